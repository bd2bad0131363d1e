"""The account pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse, reverse_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from conversations.accounts import throttle
from conversations.accounts.http import PersonRequest
from conversations.accounts.keys import BadKey, make_key
from conversations.accounts.sessions import end_sessions
from conversations.display.keys import limits_in_words, may_in_words
from conversations.models import ApiKey, Scope
from conversations.notifications.letters import compose
from conversations.notifications.mail import send_soon
from conversations.pages.account.forms import ChangePassword, Details, ForgottenPassword, NewKey, NewPassword
from conversations.pages.account.notice_form import Notifications
from conversations.pages.account.webhook_form import OwnWebhook
from conversations.pages.decorators import form_view
from conversations.pages.sidebar import sidebar
from conversations.usage import quotas, storage
from conversations.usage.totals import DAY, MONTH, of_person

KEY_ROWS_MOST = 100
"""Rows of the table of what keys used."""
CONSOLE = "django.core.mail.backends.console.EmailBackend"


def can_send_mail() -> bool:
    """Whether e-mail of this site is actually delivered."""
    return settings.EMAIL_BACKEND != CONSOLE


@sensitive_post_parameters("password")
@login_required
@require_http_methods(["GET", "POST"])
def account(request: PersonRequest) -> HttpResponse:
    """Show the account; on POST, save name and address. 400 with the errors at their fields."""
    if request.method != "POST":
        return account_page(request)
    details = Details(request, request.user, request.POST)
    if not details.is_valid():
        return account_page(request, details=details, status=400)
    details.save()
    messages.success(request, "Saved.")
    return redirect("account")


@form_view
def choose_notifications(request: PersonRequest) -> HttpResponse:
    """Store what the user wants to be told of. 400 with the errors at their fields."""
    form = Notifications(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, notices=form, status=400)
    form.save()
    messages.success(request, "Saved.")
    return redirect(f"{reverse('account')}#notifications")


@form_view
def create_key(request: PersonRequest) -> HttpResponse:
    """Create an API key, which is shown only this once. 400 with the errors at their fields."""
    form = NewKey(request.POST)
    if not form.is_valid():
        return account_page(request, form=form, status=400)
    try:
        key, text = make_key(request.user, **form.cleaned_data)
    except BadKey as error:
        form.add_error(error.field, str(error))
        return account_page(request, form=form, status=400)
    page = account_page(request, made=key, text=text, base_urls=_base_urls(request, key), status=201)
    page.headers["Cache-Control"] = "no-store"
    return page


@form_view
def revoke_key(request: PersonRequest, pk: int) -> HttpResponse:
    """Revoke one of the user's own API keys, at once."""
    key = get_object_or_404(_keys(request.user), pk=pk)
    key.delete()
    messages.success(request, f"The key {key} was revoked and no longer works.")
    return redirect(f"{reverse('account')}#keys")


@form_view
def sign_out_everywhere(request: PersonRequest) -> HttpResponse:
    """End every other session of the user. This one gets a new key, so that its old one is useless to anybody."""
    ended = end_sessions(request.user, but=request.session)
    request.session.cycle_key()
    said = f"Signed out in {ended} other place{pluralize(ended)}." if ended else "You were not signed in anywhere else."
    messages.success(request, said)
    return redirect(f"{reverse('account')}#sessions")


class SignIn(views.LoginView):
    """The sign-in page."""

    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in, and delete expired sessions: Django does not do so by itself."""
        SessionStore.clear_expired()
        return super().form_valid(form)

    def get_redirect_url(self) -> str:  # type: ignore[override]  # the types are of a later Django
        """Return the path that leads back; "" for a page to sign in on, which would lead here again."""
        then = super().get_redirect_url()
        here = (reverse("login"), reverse("admin:login"))
        return then if then.startswith("/") and urlsplit(then).path not in here else ""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add how many attempts are left after a wrong password."""
        context = super().get_context_data(**kwargs)
        if context["form"].errors:
            context["tries"] = throttle.tries_left(self.request, context["form"].cleaned_data.get("username", ""))
        return context


class ChangeOwnPassword(views.PasswordChangeView):
    """Change the password, given the current one. All other sessions end."""

    form_class = ChangePassword
    success_url = reverse_lazy("account")

    def get_form_kwargs(self) -> dict[str, Any]:
        """Add the request: a wrong password counts as a failed sign-in."""
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Change the password, and notify the user by e-mail in case it was somebody else."""
        response = super().form_valid(form)
        end_sessions(form.user, but=self.request.session)
        _notify_of_new_password(form.user)
        messages.success(self.request, "Your password was changed. All your other sessions were signed out.")
        return response


class RequestPasswordReset(views.PasswordResetView):
    """Request a link to reset a password. The answer is the same for an address that has no account."""

    form_class = ForgottenPassword

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether e-mail can be sent at all."""
        return super().get_context_data(**kwargs) | {"can_send": can_send_mail()}

    def form_valid(self, form: Any) -> HttpResponse:
        """Send the link, if the site has a mail server."""
        return (
            super().form_valid(form) if can_send_mail() else self.render_to_response(self.get_context_data(form=form))
        )


class ResetPassword(views.PasswordResetConfirmView):
    """Set a new password after following a reset link. All sessions end."""

    form_class = NewPassword

    def form_valid(self, form: Any) -> HttpResponse:
        """Set the password. Failed sign-ins are forgotten: whoever reads the user's e-mail may sign in at once."""
        response = super().form_valid(form)
        end_sessions(form.user)
        throttle.forget_failures(form.user.get_username())
        _notify_of_new_password(form.user)
        return response


def _notify_of_new_password(user: User) -> None:
    if user.email:
        send_soon(compose(user.email, "Your password was changed", "mail/password.txt", {"user": user}))


def _keys(user: User) -> Any:
    return ApiKey.objects.filter(user=user)


def account_page(request: PersonRequest, status: int = 200, **more: object) -> HttpResponse:
    """Render the account page. `more`: a form that was refused, or what was made just now, see `create_key`."""
    context = {
        "details": Details(request, request.user),
        "notices": Notifications(request.user),
        "hook": OwnWebhook.of(request.user),
        "form": NewKey(),
        "keys": [(key, may_in_words(key), limits_in_words(key)) for key in _keys(request.user)],
        "can_send": can_send_mail(),
        "usage": _usage(request.user),
        "sidebar": sidebar(request.user),
        "place": "account",
    }
    return render(request, "conversations/account.html", context | more, status=status)


def _usage(user: User) -> dict[str, Any]:
    """Return what this user's conversations and keys used, and the limits in force; 0 means no limit."""
    today, month = of_person(user.pk, DAY), of_person(user.pk, MONTH)
    stored = {"used": storage.used(user.pk), "limit": storage.limit(user.pk)}
    return {
        "spans": (("Last 24 hours", today.spent), ("Last 30 days", month.spent)),
        "today": today.spent,
        "keys": month.keys[:KEY_ROWS_MOST],
        "more_keys": len(month.keys) - KEY_ROWS_MOST,
        "requests": today.requests,
        "limits": quotas.limits(user.pk),
        "storage": stored,
    }


BASE_URLS = {
    Scope.CONTEXT: ("talks to the agent", "/context"),
    Scope.PASSTHROUGH: ("uses the site\u2019s models", "/v1"),
}
"""What an OpenAI client does with a key of this scope, and where."""


def _base_urls(request: PersonRequest, key: ApiKey) -> list[tuple[str, str]]:
    """Return what OpenAI clients do with this key, and the base URL for that, as this person reaches the site."""
    given = [BASE_URLS[scope] for scope in BASE_URLS if scope in key.scopes]
    return [(does, request.build_absolute_uri(path)) for does, path in given]
