"""Running a workflow later, or again and again: its form sets a trigger, once it is known when."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.engine.ledger import JSON
from agents.plugins.triggers.words import DueTime, preview
from conversations.models import Trigger
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.triggers import managing, slots
from conversations.triggers.managing import NewTrigger, TooMany
from conversations.triggers.pages.schedule_form import ScheduleForm
from workflows.pages.form import SCHEDULE, RunForm

STEPS = ("preview", "set")
"""What is done once it is known when: the next times are shown, or the trigger is set."""


@dataclass
class Later:
    """The page that asks when. `made`: the trigger that was set. `status`: that of the page, if none was."""

    schedule: ScheduleForm
    times: list[DueTime] = field(default_factory=list)
    made: Trigger | None = None
    status: int = 200


def run_later(form: RunForm, payload: dict[str, JSON], step: str) -> Later:
    """Take one of STEPS with a form whose input was accepted; for any other `step`, only ask when it is to run.

    Errors stand at the fields of the time. If the input cannot be used each time, they stand in the form, with 400.
    """
    if step not in STEPS:
        return Later(ScheduleForm(form.user, prefix=SCHEDULE))
    later, now = Later(ScheduleForm(form.user, form.posted, prefix=SCHEDULE), status=400), slots.now()
    schedule = later.schedule
    if not schedule.is_valid():
        return later
    new = NewTrigger(
        schedule.schedule(now), policy=form.workflow.policy_name, input=payload, overlap=schedule.chosen_overlap
    )
    try:
        checked = new.checked(form.user, now)
        if step == "preview":
            return Later(schedule, preview(checked.schedule, now))
        later.made = managing.create(form.user, new)
    except InvalidInput as error:
        of_input = {place: why for place, why in error.fields.items() if place.partition(".")[0] == "input"}
        form.refuse(InvalidInput({place.partition(".")[2]: why for place, why in of_input.items()}))
        schedule.refuse(InvalidInput({place: why for place, why in error.fields.items() if place not in of_input}))
    except (TooMany, Deactivated, NotAllowed, UnknownPolicy) as error:
        schedule.add_error(None, str(error))
        later.status = 409
    return later
