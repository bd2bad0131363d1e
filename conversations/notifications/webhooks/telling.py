"""Telling: which webhooks are told of an event, and what. Each delivery is stored together with the mark that it was.

A program that is told acts by itself, so neither presence nor quiet hours count. It is told ids, names and a link,
but no inputs and no answers: these may hold what nobody wants to leave the site, and can be read over the API.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import Ask
from agents.engine.execution.gates import ANOTHER
from agents.engine.ledger import canonical
from agents.engine.paths import HUMAN
from conversations.approvals.permissions import DECIDE_OTHERS, DECIDE_OWN
from conversations.display.call import title_of
from conversations.models import (
    ConversationKind,
    Delivery,
    Event,
    GateState,
    NoticeKind,
    Output,
    Prompt,
    State,
    Trigger,
    Webhook,
)
from conversations.models.output import UNTOLD
from conversations.notifications.choices import ways_of
from conversations.notifications.kinds import KIND_OF
from conversations.notifications.webhooks.managing import PERMISSION, now

BACKEND = "django.contrib.auth.backends.ModelBackend"
AT_ONCE = 200
"""Gates looked at in one round; the next round follows in seconds."""


def standing() -> list[Webhook]:
    """Return the webhooks that may be told of something: those that are on, and whose owner may have one."""
    allowed = User.objects.with_perm(PERMISSION, backend=BACKEND)
    found = Webhook.objects.filter(Q(user=None) | Q(user__in=allowed.order_by().values("pk")), on=True)
    return list(found.select_related("user").order_by("pk"))


def tell_of_end(prompt: Prompt, webhooks: Iterable[Webhook]) -> None:
    """Record, in the open transaction, which of these webhooks are told that a turn has ended."""
    if _is_hidden(prompt) or prompt.ended_at is None:
        return
    owner, kind = prompt.conversation.owner, KIND_OF.get(State(prompt.state))
    told = [
        webhook
        for webhook in webhooks
        if _site_wants(webhook, Event.ENDED) or (kind and webhook.user_id == owner.pk and _wants(owner, kind))
    ]
    link = f"{prompt.conversation.get_absolute_url()}#t-{prompt.pk}"
    data = {**_about(prompt), "state": prompt.state, "stop_reason": prompt.stop_reason, "link": _link(link)}
    _tell(told, Event.ENDED, [prompt.pk], prompt.ended_at, data, prompt=prompt)


def tell_of_gates() -> int:
    """Record which webhooks are told of approvals that were requested or decided; return how many were looked at.

    Each gate's own row says whether this was done, so that none is left out, or told of twice, whatever is killed.
    """
    # Of one table alone: PostgreSQL, which cannot know how few there are, might read another one whole to join it.
    untold = list(Output.objects.filter(UNTOLD).order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    if not untold:
        return 0
    webhooks = standing()
    found = (
        Output.objects.filter(pk__in=untold)
        .select_related("conversation__owner", "prompt__conversation__owner")
        .defer("data")
    )
    for gate in found.order_by("pk"):
        told = _told_of(gate, webhooks)  # before the transaction: who may decide takes many queries
        with transaction.atomic():
            seen = Output.objects.filter(UNTOLD, pk=gate.pk, gate=gate.gate, gate_path=gate.gate_path)
            if seen.update(told_gate=F("gate"), told_path=F("gate_path")) and told:
                _tell_of_gate(gate, told)
    return len(untold)


def tell_of_failure(trigger: Trigger, why: str, prompt: Prompt | None, *, off: bool) -> None:
    """Record, in the open transaction, which webhooks are told that a firing of this trigger failed.

    `off`: that switched the trigger off. Its owner's is told then.
    """
    told = [
        webhook
        for webhook in standing()
        if _site_wants(webhook, Event.TRIGGER)
        or (off and webhook.user_id == trigger.owner_id and _wants(trigger.owner, NoticeKind.TRIGGER))
    ]
    data = {
        "trigger": trigger.pk,
        "name": trigger.name,
        "owner": trigger.owner.get_username(),
        "prompt": prompt.pk if prompt else None,
        "reason": why,
        "failures": trigger.failures,
        "switched_off": off,
        "link": _link(trigger.get_absolute_url()),
    }
    _tell(told, Event.TRIGGER, [trigger.pk], timezone.now(), data, prompt=prompt, trigger=trigger)


def _told_of(gate: Output, webhooks: Iterable[Webhook]) -> list[Webhook]:
    """Return the webhooks that are told of this gate: not those that were made after it was opened."""
    asked_at, by = gate.asked_at, Actor.parse(gate.decided_by)
    if asked_at is None or _is_hidden(gate.prompt) or by.kind in (Kind.GRANT, Kind.RULE):  # those ask nobody
        return []
    return [webhook for webhook in webhooks if webhook.created_at <= asked_at and _is_told_of(webhook, gate)]


def _tell_of_gate(gate: Output, webhooks: Iterable[Webhook]) -> None:
    asked_at, by = gate.asked_at or timezone.now(), Actor.parse(gate.decided_by)
    subject = [gate.prompt_id, gate.gate_path]
    data = {
        "approval": gate.pk,
        **_about(gate.prompt),
        "tool": gate.tool,
        "description": _description(gate),
        "risk": gate.risk,
        "expires_at": gate.expires_at.isoformat() if gate.expires_at else None,
        "link": _link(reverse("approval", args=[gate.pk])),
    }
    if gate.told_path != gate.gate_path:  # that it was requested was not told yet; it may be decided already
        told = [webhook for webhook in webhooks if webhook.user or Event.REQUESTED in webhook.events]
        _tell(told, Event.REQUESTED, subject, asked_at, data, prompt=gate.prompt)
    if gate.gate != GateState.PENDING:
        told = [webhook for webhook in webhooks if webhook.user or Event.DECIDED in webhook.events]
        who = User.objects.filter(pk=by.pk or 0).first() if by.kind == Kind.USER else None
        data |= {"decision": gate.gate, "decided_by": who.get_username() if who else None}
        _tell(told, Event.DECIDED, subject, gate.decided_at or timezone.now(), data, prompt=gate.prompt)


def _description(gate: Output) -> str:
    """Return what is asked about, without anything of the input."""
    if gate.tool != HUMAN:
        return title_of(gate.tool)
    return "A question" if gate.ask == Ask.QUESTION else "Something to approve"


def _is_told_of(webhook: Webhook, gate: Output) -> bool:
    """Whether it is the site's, or its owner is told by it of what waits, and may decide this.

    As with e-mails, whoever decides for others is told of what the turn's owner may not decide alone.
    """
    person, owner = webhook.user, gate.conversation.owner
    if person is None:
        return True
    if person.pk == owner.pk:
        may = person.has_perm(DECIDE_OWN)
    else:
        may = person.has_perm(DECIDE_OTHERS) and (gate.who == ANOTHER or not owner.has_perm(DECIDE_OWN))
    return may and _wants(person, NoticeKind.WAITS)


def _site_wants(webhook: Webhook, event: Event) -> bool:
    return webhook.user_id is None and event in webhook.events


def _wants(person: User, kind: NoticeKind) -> bool:
    return ways_of(person.pk)[kind].hook


def _is_hidden(prompt: Prompt) -> bool:
    return not prompt.visible or prompt.conversation.kind == ConversationKind.HIDDEN


def _about(prompt: Prompt) -> dict[str, Any]:
    conversation = prompt.conversation
    return {
        "prompt": prompt.pk,
        "conversation": conversation.pk,
        "title": str(conversation),
        "owner": conversation.owner.get_username(),
    }


def _link(path: str) -> str:
    return settings.AGENTSITE_URL + path


def _tell(
    webhooks: Iterable[Webhook], event: Event, subject: list[Any], at: datetime, data: dict[str, Any], **of: Any
) -> None:
    """Record, in the open transaction, one delivery for each of these webhooks, unless it is there already.

    `of`: what it goes with. Webhooks that were switched off or deleted since they were looked up get none.
    """
    said = canonical([event, *subject, at.isoformat()])
    id = f"msg_{hashlib.sha256(said.encode()).hexdigest()[:32]}"
    body = canonical({"type": event, "timestamp": at.isoformat(), "data": data})
    if pks := [webhook.pk for webhook in webhooks]:
        still = Webhook.objects.select_for_update(no_key=True).filter(pk__in=pks, on=True).order_by("pk")
        delivery = {"event": event, "message_id": id, "body": body, "next_at": now(), **of}
        rows = [Delivery(webhook=webhook, **delivery) for webhook in still]
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
