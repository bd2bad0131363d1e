"""A person's own webhook on the account page: making, changing, trying and deleting it.

To whoever may not have one, these addresses do not exist.
"""

from __future__ import annotations

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from conversations.accounts.http import PersonRequest
from conversations.models import Webhook
from conversations.notifications.webhooks import managing
from conversations.pages.account.views import account_page
from conversations.pages.account.webhook_form import OwnWebhook
from conversations.pages.decorators import form_view


@form_view
def save(request: PersonRequest) -> HttpResponse:
    """Make the webhook, whose secret is shown only this once, or change its address. 400 with the error at it."""
    _refuse_strangers(request)
    form = OwnWebhook(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, hook=form, status=400)
    url = form.cleaned_data["url"]
    if form.row:
        managing.move(form.row, url)
        return _done(request, "Saved. From now on, everything is sent to the new address.")
    try:
        _, secret = managing.make(url, user=request.user)
    except IntegrityError:  # a second click
        return _done(request, "You have a webhook already.")
    return _with_secret(request, secret, status=201)


@form_view
def new_secret(request: PersonRequest) -> HttpResponse:
    """Make a new secret, which is shown only this once. The old one signs nothing any more."""
    return _with_secret(request, managing.renew_secret(_mine(request)))


@form_view
def test(request: PersonRequest) -> HttpResponse:
    """Send a test, within seconds."""
    try:
        managing.send_test(_mine(request))
    except managing.NotOn as error:
        messages.error(request, str(error))
        return redirect(f"{reverse('account')}#webhook")
    return _done(request, "A test is being sent. Reload this page in a few seconds to see what came of it.")


@form_view
def switch(request: PersonRequest, on: bool) -> HttpResponse:
    """Switch the webhook on or off."""
    webhook = _mine(request)
    if on:
        managing.switch_on(webhook)
    else:
        managing.switch_off(webhook)
    return _done(request, f"Your webhook was switched {'on' if on else 'off'}.")


@form_view
def delete(request: PersonRequest) -> HttpResponse:
    """Delete the webhook, and what is still to be sent."""
    _mine(request).delete()
    return _done(request, "Your webhook was deleted.")


def _mine(request: PersonRequest) -> Webhook:
    _refuse_strangers(request)
    return get_object_or_404(Webhook, user=request.user)


def _refuse_strangers(request: PersonRequest) -> None:
    if not request.user.has_perm(managing.PERMISSION):
        raise Http404


def _done(request: PersonRequest, said: str) -> HttpResponse:
    messages.success(request, said)
    return redirect(f"{reverse('account')}#webhook")


def _with_secret(request: PersonRequest, secret: str, status: int = 200) -> HttpResponse:
    page = account_page(request, hook_secret=secret, status=status)
    page.headers["Cache-Control"] = "no-store"
    return page
