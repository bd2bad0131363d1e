"""The pages of triggers, and what their buttons do. Everybody sees their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import local
from agents.plugins.triggers.words import DueTime, in_words, preview
from conversations.accounts.http import PersonRequest
from conversations.models import Firing, FiringState, Trigger
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar
from conversations.prompts import startable
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.triggers import managing, slots
from conversations.triggers.firing import fire_if_due
from conversations.triggers.managing import TooMany
from conversations.triggers.pages.form import ScheduleForm, TriggerForm

SHOWN = 100
"""Firings on the page of a trigger, the newest."""
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
    """A firing in a history. `due`: when that was, in the trigger's zone; "" if a person ran it."""

    firing: Firing
    due: str


@login_required
@require_http_methods(["GET", "POST"])
def triggers(request: PersonRequest) -> HttpResponse:
    """List the person's triggers; on POST make one, or show when it would fire. 400 with the errors at their fields."""
    if request.method != "POST":
        return _page(request, TriggerForm(request.user))
    form, now = TriggerForm(request.user, request.POST), slots.now()
    if not form.is_valid():
        return _page(request, form, status=400)
    new = form.trigger(now)
    try:
        if "preview" in request.POST:
            checked = new.checked(request.user, now)
            return _page(request, form, times=preview(checked.schedule, now))
        made = managing.create(request.user, new)
    except InvalidInput as error:
        form.refuse(error)
        return _page(request, form, status=400)
    except (TooMany, Deactivated) as error:
        form.add_error(None, str(error))
        return _page(request, form, status=409)
    messages.success(request, f"The trigger is set: {_row(made).when}.")
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
    firings = list(found.firings.select_related("prompt__conversation")[:SHOWN])
    history = [FiringRow(each, local(each.slot, found.zone) if each.slot else "") for each in firings]
    times = preview(found.schedule, slots.now()) if found.state == "on" else []
    context = {
        "row": _row(found),
        "history": history,
        "times": times,
        "shown": SHOWN,
        "place": "triggers",
        "sidebar": sidebar(request.user),
    }
    return render(request, "triggers/trigger.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def change(request: PersonRequest, pk: int) -> HttpResponse:
    """Show the form of a trigger as it is; on POST change it, or show when it would fire. 404 if it is not theirs.

    Of one that starts a workflow, only the time can be changed. 400 with the errors at their fields.
    """
    found = get_object_or_404(Trigger.objects.visible_to(request.user), pk=pk)
    kind, now = TriggerForm if found.policy == AGENT else ScheduleForm, slots.now()
    initial = {"text": found.text, "overlap": found.overlap}
    form = kind(request.user, request.POST or None, schedule=found.schedule, initial=initial)
    if not form.is_valid():
        return _change_page(request, found, form, status=400 if form.is_bound else 200)
    new = replace(managing.as_it_is(found), schedule=form.schedule(now), overlap=form.chosen_overlap)
    if isinstance(form, TriggerForm):
        new = replace(new, text=form.cleaned_data["text"])
    try:
        if "preview" in request.POST:
            checked = new.checked(request.user, now)
            return _change_page(request, found, form, times=preview(checked.schedule, now))
        changed = managing.change(found, new)
    except InvalidInput as error:
        form.refuse(error)
        return _change_page(request, found, form, status=400)
    except (NotAllowed, UnknownPolicy) as error:
        form.add_error(None, str(error))
        return _change_page(request, found, form, status=403)
    messages.success(request, f"Changed: {_row(changed).when}.")
    return redirect("trigger", pk=pk)


def _change_page(
    request: PersonRequest,
    trigger: Trigger,
    form: ScheduleForm,
    times: list[DueTime] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"row": _row(trigger), "form": form, "times": times, "place": "triggers"}
    return render(request, "triggers/change.html", context | {"sidebar": sidebar(request.user)}, status=status)


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
    return TriggerRow(trigger, starts, in_words(trigger.schedule), due, last)
