"""The pages of a person's own account."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse, reverse_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from conversations.accounts import throttle
from conversations.accounts.http import PersonRequest
from conversations.accounts.keys import by_public_id, make_key, public_id
from conversations.accounts.sessions import end_sessions, forget_expired
from conversations.models import ApiKey, Scope
from conversations.notifications.letters import compose
from conversations.notifications.mail import send_soon
from conversations.pages.account.forms import ChangePassword, Details, ForgottenPassword, NewKey, NewPassword
from conversations.pages.sidebar import sidebar
from conversations.usage import quotas
from conversations.usage.totals import DAY, MONTH, of_person

CONSOLE = "django.core.mail.backends.console.EmailBackend"


def can_send() -> bool:
    """Whether mails of the site reach anybody."""
    return settings.EMAIL_BACKEND != CONSOLE


@sensitive_post_parameters("password")
@login_required
@require_http_methods(["GET", "POST"])
def account(request: PersonRequest) -> HttpResponse:
    """The account, and a changed name or address. 400 with what is wrong at its field."""
    if request.method != "POST":
        return _page(request)
    details = Details(request, request.user, request.POST)
    if not details.is_valid():
        return _page(request, details=details, status=400)
    details.save()
    messages.success(request, "Saved.")
    return redirect("account")


@require_POST
@login_required
def make(request: PersonRequest) -> HttpResponse:
    """A new API key, shown this once. 400 with what is wrong at its field."""
    form = NewKey(request.POST)
    if not form.is_valid():
        return _page(request, form=form, status=400)
    try:
        key, text = make_key(request.user, form.cleaned_data["name"], form.cleaned_data["scopes"], form.lasts)
    except ValueError as error:
        form.add_error("name", str(error))
        return _page(request, form=form, status=400)
    page = _page(request, made=key, text=text, status=201)
    page.headers["Cache-Control"] = "no-store"
    return page


@require_POST
@login_required
def revoke(request: PersonRequest, key: str) -> HttpResponse:
    """End an API key of one's own, at once."""
    found = by_public_id(_keys(request.user), key)
    if found is None:
        raise Http404
    found.delete()
    messages.success(request, f"The key {found} is revoked: it does not work any more.")
    return redirect(f"{reverse('account')}#keys")


@require_POST
@login_required
def sign_out_everywhere(request: PersonRequest) -> HttpResponse:
    """End every other session of the person. This one goes on under a new name: nobody who has its old one is in."""
    ended = end_sessions(request.user, but=request.session)
    request.session.cycle_key()
    said = f"Signed out in {ended} other place{pluralize(ended)}." if ended else "You were signed in nowhere else."
    messages.success(request, said)
    return redirect(f"{reverse('account')}#sessions")


class SignIn(views.LoginView):
    """Signing in."""

    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        """Signed in; sessions that have expired go."""
        forget_expired()
        return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Also how many tries are left after a wrong password."""
        context = super().get_context_data(**kwargs)
        if context["form"].errors:
            context["tries"] = throttle.tries_left(self.request, context["form"].cleaned_data.get("username", ""))
        return context


class ChangeOwnPassword(views.PasswordChangeView):
    """A new password, for somebody who knows the old one. Every other session ends."""

    form_class = ChangePassword
    success_url = reverse_lazy("account")

    def get_form_kwargs(self) -> dict[str, Any]:
        """Also the request, for a wrong password counts."""
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Changed: tell the person, whoever did it."""
        response = super().form_valid(form)
        end_sessions(form.user, but=self.request.session)
        _tell_of_new_password(form.user)
        messages.success(
            self.request, "The password is changed. Everybody else who was signed in as you is signed out."
        )
        return response


class AskForLink(views.PasswordResetView):
    """A link to reset a password is sent to an address. The answer is the same for one that nobody has."""

    form_class = ForgottenPassword

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Also whether a mail can be sent at all."""
        return super().get_context_data(**kwargs) | {"can_send": can_send()}

    def form_valid(self, form: Any) -> HttpResponse:
        """Sent, where the site has a mail server."""
        return super().form_valid(form) if can_send() else self.render_to_response(self.get_context_data(form=form))


class UseLink(views.PasswordResetConfirmView):
    """A new password, for somebody who came by the link. Every session ends."""

    form_class = NewPassword

    def form_valid(self, form: Any) -> HttpResponse:
        """Changed. Who can read the person's mail may sign in at once, whatever was tried before."""
        response = super().form_valid(form)
        end_sessions(form.user)
        throttle.forget_failures(form.user.get_username())
        _tell_of_new_password(form.user)
        return response


def _tell_of_new_password(user: User) -> None:
    if user.email:
        send_soon(compose(user.email, "Your password was changed", "mail/password.txt", {"user": user}))


def _keys(user: User) -> Any:
    return ApiKey.objects.filter(user=user)


def _page(
    request: PersonRequest,
    *,
    details: Details | None = None,
    form: NewKey | None = None,
    made: ApiKey | None = None,
    text: str = "",
    status: int = 200,
) -> HttpResponse:
    """The account page; `text` is that of the key that was `made` now."""
    context = {
        "details": details or Details(request, request.user),
        "form": form or NewKey(),
        "keys": [(public_id(key), key, _may(key)) for key in _keys(request.user)],
        "made": made,
        "text": text,
        "can_send": can_send(),
        "usage": _usage(request.user),
        "sidebar": sidebar(request.user),
        "elsewhere": True,  # neither a conversation nor a new one
    }
    return render(request, "conversations/account.html", context, status=status)


def _usage(user: User) -> dict[str, Any]:
    """What this person's conversations used, and the limits that stand; 0: none."""
    today = of_person(user.pk, DAY)
    spans = (("Last 24 hours", today), ("Last 30 days", of_person(user.pk, MONTH)))
    return {"spans": spans, "today": today, "limits": quotas.limits(user.pk)}


def _may(key: ApiKey) -> str:
    """What a key may do, in words."""
    return ", ".join(Scope(scope).label.lower() for scope in key.scopes) or Scope.READ.label.lower()
