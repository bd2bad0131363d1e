"""The page on which a trigger is changed: what it does, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from agents.engine.root import AGENT
from agents.plugins.triggers.words import DueTime, preview
from conversations.accounts.http import PersonRequest
from conversations.models import Trigger
from conversations.pages.sidebar import sidebar
from conversations.prompts import startable
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.triggers import managing, slots
from conversations.triggers.managing import NewTrigger, TooMany
from conversations.triggers.pages.form import ReminderForm, TextForm
from conversations.triggers.pages.schedule_form import ScheduleForm

Form = TextForm | ReminderForm | ScheduleForm


@login_required
@require_http_methods(["GET", "POST"])
def change(request: PersonRequest, pk: int) -> HttpResponse:
    """Show the form of a trigger as it is; on POST change it, or show when it would fire. 404 if it is not theirs.

    Of one that starts a workflow, only the time can be changed here; of one that webhooks fire, only the text. 400
    with the errors at their fields; 404 also where there is neither.
    """
    found, now = get_object_or_404(Trigger.objects.visible_to(request.user), pk=pk), slots.now()
    if found.hook and found.policy != AGENT:
        raise Http404
    form = _form(request, found)
    if not form.is_valid():
        return _page(request, found, form, status=400 if form.is_bound else 200)
    new = _changed(form, found, now)
    try:
        if "preview" in request.POST and not found.hook:
            checked = new.checked(request.user, now)
            return _page(request, found, form, times=preview(checked.schedule, now))
        changed = managing.change(found, new)
    except InvalidInput as error:
        if isinstance(form, ScheduleForm):
            form.refuse(error)
        return _page(request, found, form, status=400)
    except (NotAllowed, UnknownPolicy, TooMany) as error:
        form.add_error(None, str(error))
        return _page(request, found, form, status=409)
    messages.success(request, f"Changed: {changed.when}.")
    return redirect("trigger", pk=pk)


def _form(request: PersonRequest, found: Trigger) -> Form:
    posted, initial = request.POST or None, {"text": found.text, "overlap": found.overlap}
    if found.hook:
        return TextForm(posted, initial=initial)
    kind = ReminderForm if found.policy == AGENT else ScheduleForm
    return kind(request.user, posted, schedule=found.schedule, initial=initial)


def _changed(form: Form, found: Trigger, now: datetime) -> NewTrigger:
    new = NewTrigger.of(found)
    if isinstance(form, TextForm):
        new = replace(new, text=form.cleaned_data["text"])
    if isinstance(form, ScheduleForm):
        new = replace(new, schedule=form.schedule(now), overlap=form.chosen_overlap)
    return new


def _page(
    request: PersonRequest, found: Trigger, form: Form, times: list[DueTime] | None = None, status: int = 200
) -> HttpResponse:
    starts = "" if found.policy == AGENT else startable.title_of(found.policy)
    context = {"trigger": found, "starts": starts, "form": form, "times": times, "place": "triggers"}
    return render(request, "triggers/change.html", context | {"sidebar": sidebar(request.user)}, status=status)
