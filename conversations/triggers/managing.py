"""Making, changing, pausing and deleting triggers: for the pages, the API and the agent's tools."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents.engine.ledger import JSON, valid_text
from agents.engine.root import AGENT
from agents.engine.schema import valid_texts
from agents.engine.secrets import hide
from agents.plugins.triggers.schedule import TEXT_MOST, BadSchedule, Schedule, zone_named
from conversations.models import Conversation, Overlap, Trigger
from conversations.prompts import startable
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import InvalidInput
from conversations.triggers import mapping, slots
from conversations.triggers.firing import fire_if_due
from conversations.triggers.inputs import check_alone, check_no_secret, checked_input

NAME_MOST = 100
EXPRESSION_MOST = 100
HOOK_BYTES = 16
"""Random bytes in the address of a webhook."""


class TooMany(Exception):
    """This person has as many triggers as one may have. The message says what to do."""

    def __init__(self, most: int) -> None:
        have = "1 trigger" if most == 1 else f"{most} triggers"
        super().__init__(f"You have {have}, which is the limit. Delete one that you no longer need.")


class TriggerKeyReused(Exception):
    """This key was already used for a different trigger. Send a new key with each new request."""

    def __init__(self, trigger: int) -> None:
        super().__init__(self.__doc__)
        self.trigger = trigger


@dataclass(frozen=True)
class NewTrigger:
    """What a trigger is to be: when it fires, and what it starts, the agent with a `text` or a workflow with `input`.

    `proof`: how senders prove who they are, if webhooks fire it. Of its schedule only the zone counts then, a workflow
    is given what the `mapping` takes from the payload, and each webhook waits its turn. `name`: what people call it; ""
    for the beginning of its text.
    """

    schedule: Schedule
    text: str = ""
    policy: str = AGENT
    input: dict[str, JSON] = field(default_factory=dict)
    name: str = ""
    tier: str = "normal"
    overlap: Overlap = Overlap.SKIP
    proof: str = ""
    mapping: dict[str, JSON] = field(default_factory=dict)

    @classmethod
    def of(cls, trigger: Trigger) -> NewTrigger:
        """Return what a trigger is now, to be changed in part. A name that is the beginning of its text follows it."""
        of_text = trigger.text and trigger.name == _shortened(" ".join(trigger.text.split()))
        return cls(
            trigger.schedule,
            trigger.text,
            trigger.policy,
            trigger.input,
            "" if of_text else trigger.name,
            trigger.tier,
            Overlap(trigger.overlap),
            trigger.proof,
            trigger.mapping,
        )

    def checked(self, owner: User, now: datetime) -> NewTrigger:
        """Return it as it is stored, without secrets of the site.

        Raises InvalidInput by field: `text`, `name`, `policy`, `input.<field>`, `mapping.<field>`, or one of the
        schedule; and NotAllowed and UnknownPolicy for what the owner may not start.
        """
        wrong: dict[str, list[str]] = {}
        text, name = (hide(valid_text(given)).replace("\r\n", "\n").strip() for given in (self.text, self.name))
        found = None if self.policy == AGENT else startable.find_for(owner, self.policy)
        if found is None and not text:
            wrong["text"] = ["Write what the agent is to do, or what it is to remind you of."]
        elif len(text) > TEXT_MOST:
            wrong["text"] = [f"At most {TEXT_MOST:,} characters are accepted; this has {len(text):,}."]
        if len(name) > NAME_MOST:
            wrong["name"] = [f"At most {NAME_MOST} characters are accepted."]
        wrong |= self._wrong_zone() if self.proof else self._wrong_schedule(now)
        if self.proof and found is None and self.mapping:
            wrong["mapping"] = ["It starts the agent, which reads the payload itself. Map fields of a workflow only."]
        input: dict[str, JSON] = {}
        if found is not None:
            text = ""
            place = "mapping" if self.proof else "input"
            try:
                if self.proof:
                    check_alone(found)
                    mapping.check(self.mapping, found)
                    check_no_secret(self.mapping)
                else:
                    input = checked_input(found, self.input, owner)
            except InvalidInput as error:
                wrong |= {f"{place}.{name}".rstrip("."): why for name, why in error.fields.items()}
        if wrong:
            raise InvalidInput(wrong)
        title = found.title if found else " ".join(text.split())
        overlap = Overlap.QUEUE if self.proof else self.overlap
        mapped = valid_texts(self.mapping)
        return replace(self, text=text, input=input, name=name or _shortened(title), overlap=overlap, mapping=mapped)

    def _wrong_zone(self) -> dict[str, list[str]]:
        """Return what is wrong with the zone, in whose time the history is shown."""
        try:
            zone_named(self.schedule.zone)
        except BadSchedule as error:
            return {error.field: [str(error)]}
        return {}

    def _wrong_schedule(self, now: datetime) -> dict[str, list[str]]:
        """Return what is wrong with the schedule, by its field."""
        if len(self.schedule.expression) > EXPRESSION_MOST:
            return {"expression": [f"At most {EXPRESSION_MOST} characters are accepted."]}
        try:
            self.schedule.check(now, settings.AGENTSITE_TRIGGER_LEAST_SECONDS)
        except BadSchedule as error:
            return {error.field: [str(error)]}
        return {}


def _shortened(text: str) -> str:
    return text if len(text) <= NAME_MOST else f"{text[: NAME_MOST - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def create(
    owner: User,
    new: NewTrigger,
    *,
    key: str = "",
    digest: str = "",
    conversation: Conversation | None = None,
    asked_in: Conversation | None = None,
) -> Trigger:
    """Store a trigger and return it. The same `key` again returns the first, if what was sent has the same `digest`.

    `conversation`: where its turns stand; by default in one of its own. `asked_in`: the chat whose agent makes it.
    Raises what NewTrigger.checked raises, TriggerKeyReused, TooMany, and Deactivated.
    """
    with transaction.atomic():
        if not User.objects.select_for_update(no_key=True).get(pk=owner.pk).is_active:
            raise Deactivated
        if key and (earlier := Trigger.objects.filter(owner=owner, key=key).first()):
            if earlier.key_digest != digest:
                raise TriggerKeyReused(earlier.pk)
            return earlier
        time = slots.now()
        checked = new.checked(owner, time)
        _refuse_too_many(owner)
        trigger = Trigger(owner=owner, key=key, key_digest=digest, conversation=conversation, asked_in=asked_in)
        trigger.hook, trigger.proof = secrets.token_hex(HOOK_BYTES) if new.proof else "", new.proof
        trigger.save()
        _set(trigger, checked, time)
        return trigger


def _refuse_too_many(owner: User) -> None:
    """Raise TooMany if this person, whose row is locked, may have no further trigger. Those that are over are free."""
    most = settings.AGENTSITE_TRIGGERS_A_PERSON
    over: dict[str, Any] = {"next_at": None, "paused_at": None, "off_reason": "", "hook": ""}
    if Trigger.objects.filter(owner=owner).exclude(**over).count() >= most:
        raise TooMany(most)


def change(trigger: Trigger, new: NewTrigger) -> Trigger:
    """Change a trigger; when it is due from now on is worked out anew.

    Raises what NewTrigger.checked raises, and TooMany if it was over and would be one more than its owner may have.
    What it was due at by now, in the old way, is not lost: it fires first.
    """
    with transaction.atomic():
        fire_if_due(trigger.pk)
        locked = Trigger.objects.select_for_update().select_related("owner").get(pk=trigger.pk)
        time = slots.now()
        checked = new.checked(locked.owner, time)
        if locked.state == "over":
            _refuse_too_many(locked.owner)
        _set(locked, checked, time)
        return locked


def _set(trigger: Trigger, new: NewTrigger, time: datetime) -> None:
    schedule = new.schedule
    trigger.name, trigger.text, trigger.policy, trigger.input = new.name, new.text, new.policy, new.input
    trigger.tier, trigger.overlap, trigger.mapping = new.tier, new.overlap, new.mapping
    trigger.zone, trigger.at, trigger.seconds = schedule.zone, schedule.at, schedule.seconds
    trigger.since, trigger.expression = schedule.since, schedule.expression
    slots.place(trigger, time)
    trigger.save()


def pause(trigger: Trigger) -> None:
    """Pause a trigger: until it is resumed, it fires only if somebody runs it by hand."""
    Trigger.objects.filter(pk=trigger.pk, paused_at=None).update(paused_at=timezone.now())


def resume(trigger: Trigger) -> None:
    """Let a trigger fire again that was paused or switched off. What it was due at meanwhile is left out."""
    with transaction.atomic():
        locked = Trigger.objects.select_for_update().get(pk=trigger.pk)
        locked.paused_at, locked.off_reason, locked.failures = None, "", 0
        slots.place(locked, slots.now())
        locked.save()


def delete(trigger: Trigger) -> None:
    """Delete a trigger with its history. The turns that it started stay."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=trigger.owner_id)  # it does not fire meanwhile
        trigger.delete()
