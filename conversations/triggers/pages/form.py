"""The forms of triggers: what one is to do, and when, or by which webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import TEXT_MOST, Schedule
from conversations.models import Proof
from conversations.pages.account.forms import Styled
from conversations.prompts import startable
from conversations.triggers.managing import NewTrigger
from conversations.triggers.pages.schedule_form import HOOK, WHEN, ScheduleForm


class TextForm(Styled, forms.Form):
    """What the agent is to do."""

    use_required_attribute = False  # it may depend on other fields what is needed

    text = forms.CharField(
        label="What to do, or what to remind you of",
        max_length=TEXT_MOST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The agent is given only this text, and what a webhook sent as a file.",
    )


class ReminderForm(ScheduleForm, TextForm):
    """What the agent is to do, and when."""

    def trigger(self, now: datetime) -> NewTrigger:
        """Return what the valid form asks for, seen from now."""
        return NewTrigger(self.schedule(now), self.cleaned_data["text"], overlap=self.chosen_overlap)


class TriggerForm(ReminderForm):
    """What a new trigger is to do, and when, or by which webhooks.

    These start the agent with the text, or the workflow that `starts` names, which needs none.
    """

    when = forms.ChoiceField(label="When", choices=(*WHEN, (HOOK, "By a webhook")), initial="daily")
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

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(owner, *args, **kwargs)
        can = [each for each in startable.registered() if each.schedulable and each.may(owner)]
        workflows = [(f"{each.kind}:{each.name}", each.title) for each in can]
        cast(forms.ChoiceField, self.fields["starts"]).choices = [("", "The agent, with the text above"), *workflows]
        if self.data.get("when") == HOOK and self.data.get("starts"):
            self.fields["text"].required = False

    def trigger(self, now: datetime) -> NewTrigger:
        """Return what the valid form asks for, seen from now."""
        given = self.cleaned_data
        if given["when"] != HOOK:
            return super().trigger(now)
        policy, proof = given["starts"] or AGENT, given["proof"] or Proof.STANDARD
        return NewTrigger(Schedule(given["zone"]), given["text"], policy, proof=proof)
