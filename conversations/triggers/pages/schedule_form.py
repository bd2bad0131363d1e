"""The fields of a schedule in a form: the usual ones by name, any other as a cron expression."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import datetime, time
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User

from agents.plugins.triggers.schedule import SECONDS_MOST, Schedule, zone_named
from agents.plugins.triggers.words import DAYS
from conversations.accounts.zones import zone_of, zones_by_region
from conversations.models import Overlap
from conversations.pages.account.forms import Styled
from conversations.prompts.startable import InvalidInput

HOOK = "hook"
"""What `when` is for a trigger that webhooks fire, where a form offers that."""
WHEN = (
    ("once", "Once"),
    ("daily", "Every day"),
    ("weekdays", "Every weekday, Monday to Friday"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
    ("every", "Every so many minutes"),
    ("cron", "By a cron expression"),
)
OF_TIME = frozenset({"date", "weekday", "day", "time", "minutes", "expression"})
"""The fields of the time, of which each kind of schedule needs some."""
NEEDED: dict[str, tuple[str, ...]] = {
    "once": ("date", "time"),
    "weekly": ("weekday", "time"),
    "monthly": ("day", "time"),
    "every": ("minutes",),
    "cron": ("expression",),
    HOOK: (),
}
"""The fields that each kind of schedule needs, where it is not the time alone."""
FIELD_OF = {"at": "date", "seconds": "minutes"}
"""The field in which a mistake in this part of a schedule was made, where it has another name."""
_USUAL = re.compile(r"(?P<minute>\d{1,2}) (?P<hour>\d{1,2}) (?P<day>\*|\d{1,2}) \* (?P<weekday>\*|1-5|[0-6])")
"""An expression that one of the named schedules stands for."""


class ScheduleForm(Styled, forms.Form):
    """When a trigger is due, and what becomes of it while it runs. `when` says which of the fields of the time count.

    `schedule`: the one that it shows and changes, if there is one already.
    """

    when = forms.ChoiceField(label="When", choices=WHEN, initial="daily")
    date = forms.DateField(required=False, label="On", widget=forms.DateInput(attrs={"type": "date"}))
    weekday = forms.ChoiceField(
        required=False, label="On", choices=[(str(day % 7), DAYS[day % 7]) for day in range(1, 8)]
    )
    day = forms.IntegerField(
        required=False,
        label="On day",
        min_value=1,
        max_value=31,
        initial=1,
        help_text="A month without it is left out.",
    )
    time = forms.TimeField(required=False, label="At", widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"))
    minutes = forms.IntegerField(required=False, label="Minutes", min_value=1, max_value=SECONDS_MOST // 60)
    expression = forms.CharField(
        required=False,
        max_length=100,
        label="Cron expression",
        help_text="Minute, hour, day of the month, month, day of the week: 0 9 * * 1-5 is every weekday at 09:00.",
    )
    zone = forms.ChoiceField(label="Time zone")
    overlap = forms.ChoiceField(
        label="If the previous turn has not ended", choices=Overlap, initial=Overlap.SKIP, required=False
    )

    def __init__(self, owner: User, *args: Any, schedule: Schedule | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._before = schedule
        zone = schedule.zone if schedule else zone_of(owner).key
        known = zones_by_region()
        here = [] if any(zone == name for _, zones in known for name, _ in zones) else [(zone, zone)]
        cast(forms.ChoiceField, self.fields["zone"]).choices = [*here, *known]
        self.fields["zone"].initial = zone
        self.fields["time"].initial = "09:00"
        if schedule:
            self.initial = {**fields_of(schedule), **self.initial}

    def clean(self) -> dict[str, Any]:
        """Check that the fields of the chosen time are there."""
        given = super().clean() or {}
        needed = NEEDED.get(given.get("when", ""), ("time",))
        for name in OF_TIME - {*needed}:
            self.errors.pop(name, None)  # the page does not show it
            given.setdefault(name, None)
        for name in needed:
            if name not in self.errors and given.get(name) in (None, ""):
                self.add_error(name, "This is needed.")
        return given

    @property
    def chosen_overlap(self) -> Overlap:
        """What the valid form says of a time at which the turn before has not ended."""
        return Overlap(self.cleaned_data["overlap"] or Overlap.SKIP)

    def schedule(self, now: datetime) -> Schedule:
        """Return when the valid form says that it is due. Minutes count from now, or from when they did before."""
        given, zone = self.cleaned_data, self.cleaned_data["zone"]
        match given["when"]:
            case "once":
                at = datetime.combine(given["date"], given["time"], tzinfo=zone_named(zone))
                return Schedule(zone, at=at)
            case "every":
                before = self._before
                if before and before.seconds and _minutes(before.seconds) == given["minutes"]:
                    return replace(before, zone=zone)
                return Schedule(zone, seconds=given["minutes"] * 60, since=now)
            case "cron":
                return Schedule(zone, expression=given["expression"])
        days = {"weekdays": "* * 1-5", "weekly": f"* * {given['weekday']}", "monthly": f"{given['day']} * *"}
        of_day = given["time"]
        return Schedule(zone, expression=f"{of_day.minute} {of_day.hour} {days.get(given['when'], '* * *')}")

    def refuse(self, error: InvalidInput) -> None:
        """Show what is wrong at the fields in which it was given."""
        for place, why in error.fields.items():
            name = FIELD_OF.get(place, place)
            for each in why:
                self.add_error(name if name in self.fields else None, each)


def fields_of(schedule: Schedule) -> dict[str, Any]:
    """Return what the fields of the form show for a schedule: the usual ones by name, any other as an expression."""
    if schedule.at is not None:
        at = schedule.at.astimezone(zone_named(schedule.zone))
        return {"when": "once", "date": at.date(), "time": at.time()}
    if schedule.seconds is not None:
        return {"when": "every", "minutes": _minutes(schedule.seconds)}
    if found := _USUAL.fullmatch(schedule.cron):
        of_day = time(int(found["hour"]), int(found["minute"]))
        day, weekday = found["day"], found["weekday"]
        if day == "*":
            names = {"*": {"when": "daily"}, "1-5": {"when": "weekdays"}}
            return names.get(weekday, {"when": "weekly", "weekday": weekday}) | {"time": of_day}
        if weekday == "*":
            return {"when": "monthly", "day": int(day), "time": of_day}
    return {"when": "cron", "expression": schedule.expression}


def _minutes(seconds: int) -> int:
    """Return so many seconds in whole minutes, which is what the form takes; the API also takes others."""
    return math.ceil(seconds / 60)
