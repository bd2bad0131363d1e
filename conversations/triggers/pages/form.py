"""The form of a trigger: the usual schedules by name, any other as a cron expression, or webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import SECONDS_MOST, TEXT_MOST, Schedule, zone_named
from agents.plugins.triggers.words import DAYS
from conversations.accounts.zones import zone_of, zones_by_region
from conversations.models import Overlap, Proof
from conversations.pages.account.forms import Styled
from conversations.prompts import startable
from conversations.prompts.startable import InvalidInput
from conversations.triggers.managing import NewTrigger

HOOK = "hook"
WHEN = (
    ("once", "Once"),
    ("daily", "Every day"),
    ("weekdays", "Every weekday, Monday to Friday"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
    ("every", "Every so many minutes"),
    ("cron", "By a cron expression"),
    (HOOK, "By a webhook"),
)
FIELD_OF = {"at": "date", "seconds": "minutes"}
"""The field in which a mistake in this part of a schedule was made, where it has another name."""


class TriggerForm(Styled, forms.Form):
    """What a trigger is to do, and when. `when` says which of the fields of the time count.

    Webhooks start the agent with the text, or the workflow that `starts` names, which needs none.
    """

    use_required_attribute = False  # it depends on other fields what is needed

    text = forms.CharField(
        label="What to do, or what to remind you of",
        max_length=TEXT_MOST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The agent will be given only this text.",
    )
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
    proof = forms.ChoiceField(
        required=False,
        choices=Proof,
        initial=Proof.STANDARD,
        label="How the sender proves who it is",
        help_text="By a signature, as most services make one, or simply by a token. The secret is shown once.",
    )
    starts = forms.ChoiceField(
        required=False, label="Starts", help_text="What a workflow is given of the payload, you choose afterwards."
    )
    zone = forms.ChoiceField(label="Time zone")
    overlap = forms.ChoiceField(
        label="If the previous turn has not ended", choices=Overlap, initial=Overlap.SKIP, required=False
    )

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = zone_of(owner).key
        known = zones_by_region()
        here = [] if any(zone == name for _, zones in known for name, _ in zones) else [(zone, zone)]
        cast(forms.ChoiceField, self.fields["zone"]).choices = [*here, *known]
        self.fields["zone"].initial = zone
        self.fields["time"].initial = "09:00"
        can = [each for each in startable.registered() if each.schedulable and each.may(owner)]
        workflows = [(f"{each.kind}:{each.name}", each.title) for each in can]
        cast(forms.ChoiceField, self.fields["starts"]).choices = [("", "The agent, with the text above"), *workflows]
        if self.data.get("when") == HOOK and self.data.get("starts"):
            self.fields["text"].required = False

    def clean(self) -> dict[str, Any]:
        """Check that the fields of the chosen time are there."""
        given = super().clean() or {}
        needed = {
            "once": ("date", "time"),
            "weekly": ("weekday", "time"),
            "monthly": ("day", "time"),
            "every": ("minutes",),
            "cron": ("expression",),
            HOOK: (),
        }.get(given.get("when", ""), ("time",))
        for name in needed:
            if name not in self.errors and given.get(name) in (None, ""):
                self.add_error(name, "This is needed.")
        return given

    def trigger(self, now: datetime) -> NewTrigger:
        """Return what the valid form asks for, seen from now."""
        given = self.cleaned_data
        if given["when"] == HOOK:
            policy, proof = given["starts"] or AGENT, given["proof"] or Proof.STANDARD
            return NewTrigger(Schedule(given["zone"]), given["text"], policy, proof=proof)
        return NewTrigger(self._schedule(now), given["text"], overlap=Overlap(given["overlap"] or Overlap.SKIP))

    def _schedule(self, now: datetime) -> Schedule:
        given, zone = self.cleaned_data, self.cleaned_data["zone"]
        match given["when"]:
            case "once":
                at = datetime.combine(given["date"], given["time"], tzinfo=zone_named(zone))
                return Schedule(zone, at=at)
            case "every":
                return Schedule(zone, seconds=given["minutes"] * 60, since=now)
            case "cron":
                return Schedule(zone, expression=given["expression"])
        days = {"weekdays": "* * 1-5", "weekly": f"* * {given['weekday']}", "monthly": f"{given['day']} * *"}
        time = given["time"]
        return Schedule(zone, expression=f"{time.minute} {time.hour} {days.get(given['when'], '* * *')}")

    def refuse(self, error: InvalidInput) -> None:
        """Show what is wrong at the fields in which it was given."""
        for place, why in error.fields.items():
            name = FIELD_OF.get(place, place)
            for each in why:
                self.add_error(name if name in self.fields else None, each)
