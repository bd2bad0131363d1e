"""What the page of a trigger that webhooks fire has besides: its secrets, its mapping, and starting again."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from agents.engine.root import AGENT
from conversations.accounts.http import PersonRequest
from conversations.models import FiringState, HookSecret, Trigger
from conversations.pages.decorators import form_view
from conversations.pages.sidebar import sidebar
from conversations.prompts import startable
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.triggers import managing
from conversations.triggers.firing import sample_of, start_again
from conversations.triggers.hooks import secrets
from conversations.triggers.hooks.secrets import LastSecret, TooManySecrets
from conversations.triggers.pages.mapping_form import MappingForm
from conversations.triggers.pages.views import trigger_page


@form_view
def add_secret(request: PersonRequest, pk: int) -> HttpResponse:
    """Make one more secret and show it, this once. 404 if the trigger is not theirs."""
    found = _hooked(request, pk)
    try:
        _, text = secrets.add(found)
    except TooManySecrets as error:
        messages.warning(request, str(error))
        return redirect("trigger", pk=pk)
    return trigger_page(request, found, text)


@form_view
def remove_secret(request: PersonRequest, pk: int, secret: int) -> HttpResponse:
    """Remove a secret. 404 if it is not theirs."""
    try:
        secrets.remove(_hooked(request, pk), secret)
    except HookSecret.DoesNotExist:
        raise Http404 from None
    except LastSecret as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, "Removed. Webhooks that are sent with it are refused from now on.")
    return redirect("trigger", pk=pk)


@form_view
def start_firing_again(request: PersonRequest, pk: int, firing: int) -> HttpResponse:
    """Start a webhook again that failed to start. 404 if it is not theirs."""
    failed = get_object_or_404(_hooked(request, pk).firings, pk=firing)
    again = start_again(failed.pk)
    if again is None:
        messages.warning(request, "Only a webhook that failed to start can be started again.")
    elif again.state == FiringState.FAILED:
        messages.warning(request, f"Failed: {again.reason}")
    else:
        messages.success(request, "Started." if again.state == FiringState.STARTED else "It waits for its turn.")
    return redirect("trigger", pk=pk)


@login_required
@require_http_methods(["GET", "POST"])
def mapping(request: PersonRequest, pk: int) -> HttpResponse:
    """Show what a workflow is given of a payload; on POST save that, or only show it. 404 if it is not theirs."""
    trigger = _hooked(request, pk)
    if trigger.policy == AGENT:
        raise Http404
    try:
        found = startable.find_for(request.user, trigger.policy)
    except (NotAllowed, UnknownPolicy) as error:
        messages.warning(request, str(error))
        return redirect("trigger", pk=pk)
    form = MappingForm(trigger, found, sample_of(trigger), request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST" and "preview" not in request.POST:
        try:
            form.check()
            managing.change(trigger, replace(managing.NewTrigger.of(trigger), mapping=form.mapping))
        except InvalidInput as error:
            form.refuse(error)
            status = 400
        else:
            messages.success(request, "The mapping is saved.")
            return redirect("trigger", pk=pk)
    elif form.can_try:
        form.try_it()
    context = {
        "trigger": trigger,
        "title": found.title,
        "form": form,
        "place": "triggers",
        "sidebar": sidebar(request.user),
    }
    return render(request, "triggers/mapping.html", context, status=status)


def _hooked(request: PersonRequest, pk: int) -> Trigger:
    return get_object_or_404(Trigger.objects.visible_to(request.user).exclude(hook=""), pk=pk)
