"""The pages of triggers, and what their buttons do. Everybody sees their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import local
from agents.plugins.triggers.words import DueTime, preview
from conversations.accounts.http import PersonRequest
from conversations.models import Firing, FiringState, HookSecret, Proof, Trigger
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar
from conversations.prompts import startable
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import InvalidInput
from conversations.triggers import managing, slots
from conversations.triggers.firing import fire_if_due
from conversations.triggers.hooks import secrets
from conversations.triggers.managing import NewTrigger, TooMany
from conversations.triggers.pages.form import TriggerForm

SHOWN = 100
"""Firings on the page of a trigger, the newest."""
CURL = """curl '{url}' \\
  -H 'Authorization: Bearer {token}' \\
  -H 'Content-Type: application/json' -d '{{"title": "A first webhook"}}'"""
"""A command that sends a webhook to a trigger whose senders have a token."""
OVER_SHOWN = 20
"""Triggers that are over which the list still shows, the newest."""


@dataclass(frozen=True)
class TriggerRow:
    """A trigger as it is listed: what it starts and when, in words, when it is due next, and what became of it last."""

    trigger: Trigger
    starts: str
    when: str
    due: str
    last: Firing | None = None


@dataclass(frozen=True)
class FiringRow:
    """A firing in a history. `due`: when that was, in the trigger's zone; "" if a person ran one that has its times."""

    firing: Firing
    due: str


@dataclass(frozen=True)
class HookShown:
    """What the page of a trigger shows of its webhook.

    `url`: where it is sent to. `secret`: one that was made just now, "" otherwise. `curl`: a command that sends one.
    `mapped`: whether somebody has mapped fields of the workflow; None for the agent.
    """

    url: str
    proof: str
    secret: str
    secrets: list[HookSecret]
    curl: str
    mapped: bool | None


@login_required
@require_http_methods(["GET", "POST"])
def triggers(request: PersonRequest) -> HttpResponse:
    """List the person's triggers; on POST make one, or show when it would fire. 400 with the errors at their fields."""
    if request.method != "POST":
        return _page(request, TriggerForm(request.user))
    form, now = TriggerForm(request.user, request.POST), slots.now()
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        return _made(request, form, form.trigger(now), now)
    except InvalidInput as error:
        form.refuse(error)
        return _page(request, form, status=400)
    except (TooMany, Deactivated) as error:
        form.add_error(None, str(error))
        return _page(request, form, status=409)


def _made(request: PersonRequest, form: TriggerForm, new: NewTrigger, now: datetime) -> HttpResponse:
    """Make a trigger, or only show when it would fire. Raises what managing.create raises."""
    if "preview" in request.POST and not new.proof:
        checked = new.checked(request.user, now)
        return _page(request, form, times=preview(checked.schedule, now))
    with transaction.atomic():
        made = managing.create(request.user, new)
        secret = secrets.first(made) if made.hook else ""
    if secret:
        return trigger_page(request, made, secret)
    messages.success(request, f"The trigger is set: {made.when}.")
    return redirect("triggers")


def _page(
    request: PersonRequest, form: TriggerForm, times: list[DueTime] | None = None, status: int = 200
) -> HttpResponse:
    mine = Trigger.objects.visible_to(request.user)
    over = mine.in_state("over").values("pk")
    shown = [*mine.exclude(pk__in=over), *mine.in_state("over")[:OVER_SHOWN]]
    last = _last_firings(shown)
    rows = [_row(each, last.get(each.pk)) for each in shown]
    context = {"rows": rows, "form": form, "times": times, "place": "triggers", "sidebar": sidebar(request.user)}
    return render(request, "triggers/triggers.html", context, status=status)


def _last_firings(shown: list[Trigger]) -> dict[int, Firing]:
    """Return the last firing of each of these triggers that has fired, by trigger."""
    newest = Firing.objects.filter(trigger=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    of_each = Trigger.objects.filter(pk__in=[each.pk for each in shown]).values(last=Subquery(newest))
    return {firing.trigger_id: firing for firing in Firing.objects.filter(pk__in=of_each)}


@page_view
def trigger(request: PersonRequest, pk: int) -> HttpResponse:
    """Show one trigger with its history. 404 if it is not theirs."""
    found = get_object_or_404(Trigger.objects.visible_to(request.user).select_related("conversation"), pk=pk)
    return trigger_page(request, found)


def trigger_page(request: PersonRequest, found: Trigger, secret: str = "", status: int = 200) -> HttpResponse:
    """Return the page of a trigger. `secret`: that of a webhook's sender which was made just now, shown this once."""
    history = []
    for firing in Firing.objects.told().filter(trigger=found)[:SHOWN]:
        when = firing.slot or (firing.fired_at if found.hook else None)
        history.append(FiringRow(firing, local(when, found.zone) if when else ""))
    times = preview(found.schedule, slots.now()) if found.state == "on" and not found.hook else []
    context = {
        "hook": _hook(request, found, secret) if found.hook else None,
        "row": _row(found),
        "history": history,
        "times": times,
        "shown": SHOWN,
        "place": "triggers",
        "sidebar": sidebar(request.user),
    }
    page = render(request, "triggers/trigger.html", context, status=status)
    if secret:
        page.headers["Cache-Control"] = "no-store"
    return page


def _hook(request: PersonRequest, found: Trigger, secret: str) -> HookShown:
    url = request.build_absolute_uri(found.hook_path)
    curl = ""
    if found.proof == Proof.TOKEN:
        curl = CURL.format(url=url, token=secret or "TOKEN")
    mapped = None if found.policy == AGENT else bool(found.mapping)
    return HookShown(url, Proof(found.proof).label, secret, list(found.hook_secrets.all()), curl, mapped)


@form_view
def do(request: PersonRequest, pk: int, what: str) -> HttpResponse:
    """Pause, resume, run or delete a trigger. 404 if it is not theirs."""
    found = get_object_or_404(Trigger.objects.visible_to(request.user), pk=pk)
    if what == "delete":
        managing.delete(found)
        messages.success(request, "Deleted. The turns that it started are still there.")
        return redirect("triggers")
    if what == "pause":
        managing.pause(found)
        messages.success(request, "Paused. It fires only if you run it.")
    elif what == "resume":
        managing.resume(found)
        messages.success(request, "Resumed.")
    elif fired := fire_if_due(found.pk, by_hand=True):
        started = fired.state == FiringState.STARTED
        (messages.success if started else messages.warning)(
            request, "Started." if started else f"{fired.get_state_display()}: {fired.reason}".rstrip(": ")
        )
    return redirect("trigger", pk=pk)


def _row(trigger: Trigger, last: Firing | None = None) -> TriggerRow:
    starts = trigger.text if trigger.policy == AGENT else startable.title_of(trigger.policy)
    due = local(trigger.next_at, trigger.zone) if trigger.next_at and trigger.state == "on" else ""
    return TriggerRow(trigger, starts, trigger.when, due, last)
