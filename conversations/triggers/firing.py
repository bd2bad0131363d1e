"""Firing: what becomes of each time that a trigger is due. Looked for where the worker looks for what is due.

A time is claimed, entered in the history, and its turn stored in one transaction. So no crash makes one of them happen
without the others, and of two hosts that look at once, one finds nothing left to claim.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import local
from conversations.database.busy import brief_waits, is_locked
from conversations.database.crashpoints import crashpoint
from conversations.files.uploads import BadFile
from conversations.models import (
    Conversation,
    ConversationKind,
    Firing,
    FiringState,
    NoticeKind,
    Origin,
    Overlap,
    Payload,
    Prompt,
    State,
    Trigger,
)
from conversations.models.prompt import ENDED
from conversations.notifications.notify import notify
from conversations.notifications.webhooks.telling import tell_of_failure
from conversations.prompts import startable
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.start import BadInput, Deactivated, start_prompt
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.triggers import slots
from conversations.triggers.payloads import input_of, payload_file
from conversations.usage import quotas
from conversations.usage.quotas import OverQuota

logger = logging.getLogger(__name__)
T = TypeVar("T")

AT_ONCE = 100
"""Triggers that one look fires at most. The next look follows within seconds."""
QUEUE_SECONDS = 1.0
"""Time between looks while a firing waits for the turn of an earlier one to end."""
AGAIN_SECONDS = 60
"""When a trigger that could not be fired is looked at again."""
QUEUED_MOST = 1_000
"""Firings of one trigger that wait at most; further ones are left out."""
FULL = f"{QUEUED_MOST:,} already wait, which is the limit."
RUNS = "The turn that it started before had not ended."
WAITS = "The turn that it started before waits for a decision."


def fire_due() -> int:
    """Fire what is due, and start what has waited for its turn; return how many turns that started."""
    ended = Firing.objects.filter(open=True).filter(Q(prompt=None) | Q(prompt__state__in=ENDED))
    for pk in list(ended.order_by("pk").values_list("trigger", flat=True)[:AT_ONCE]):
        _alone(settle, pk)
    started = 0
    # Those whose turn goes on are not looked at: a hundred that wait for a decision would keep all others waiting.
    going_on = Firing.objects.filter(trigger=OuterRef("trigger"), open=True)
    queued = _queued().exclude(Exists(going_on))
    for pk in list(queued.order_by("trigger").values_list("trigger", flat=True).distinct()[:AT_ONCE]):
        firing = _alone(start_queued, pk)
        started += bool(firing and firing.state == FiringState.STARTED)
    due = Trigger.objects.on().filter(next_at__lte=slots.now()).order_by("next_at", "pk")
    for pk in list(due.values_list("pk", flat=True)[:AT_ONCE]):
        firing = _alone(fire_if_due, pk)
        crashpoint("after_fired")
        started += bool(firing and firing.state == FiringState.STARTED)
    return started


def next_look() -> float:
    """Return the seconds until something is due, below 0 if it is overdue; infinite if nothing is to come."""
    undecided = Firing.objects.filter(trigger=OuterRef("trigger"), open=True, prompt__state=State.WAITING)
    if _queued().exclude(Exists(undecided)).exists():
        return QUEUE_SECONDS
    first = Trigger.objects.on().filter(next_at__isnull=False).aggregate(first=Min("next_at"))["first"]
    return math.inf if first is None else (first - slots.now()).total_seconds()


def _queued() -> QuerySet[Firing]:
    """Return the firings that wait, of triggers that can fire."""
    return Firing.objects.filter(state=FiringState.QUEUED, trigger__in=Trigger.objects.on())


def _alone(does: Callable[[int], T], pk: int) -> T | None:
    """Do this in a transaction of its own. If it fails, it is logged: it must hold up neither the others nor the sweep.

    What is due is then due again AGAIN_SECONDS later. An error of the whole database is raised.
    """
    try:
        with brief_waits(), transaction.atomic():
            return does(pk)
    except OperationalError as error:
        if not is_locked(error):
            raise
        logger.warning("a trigger is locked by another process; it fires later", extra={"trigger": pk})
    except Exception:
        logger.exception("a trigger could not be fired", extra={"trigger": pk})
        again = slots.now() + timedelta(seconds=AGAIN_SECONDS)
        Trigger.objects.filter(pk=pk, next_at__lt=again).update(next_at=again)
    return None


def fire_if_due(pk: int, *, by_hand: bool = False) -> Firing | None:
    """Fire a trigger that is due, or `by_hand` in any case; return what became of it. None if it is not due.

    Of the times that passed since it was due first, the last one counts, and the others are entered as missed. One that
    webhooks fire is run by hand with the last payload that came.
    """
    with transaction.atomic():
        trigger = locked(pk)
        if trigger is None:
            return None
        if by_hand and trigger.hook:
            return _run(trigger)
        if by_hand:
            return _fire(trigger, None)
        time, slot = slots.now(), trigger.slot
        if slot is None or slot > time or trigger.state != "on":
            return None
        last, times = trigger.schedule.due(slot, time) if trigger.schedule.repeats else (slot, 1)
        if times > 1:
            why = f"No worker was running in time. It fired once instead, late, for {local(last, trigger.zone)}."
            Firing.objects.create(trigger=trigger, slot=slot, state=FiringState.MISSED, reason=why, times=times - 1)
        slots.place(trigger, max(last, time))
        trigger.save(update_fields=["slot", "next_at"])
        crashpoint("after_slot")
        if trigger.firings.filter(slot=last).exists():  # it fired before the clock was set back
            return None
        return _fire(trigger, last)


def settle(pk: int) -> None:
    """See which turns of a trigger have ended: count failures, and switch it off after too many in a row."""
    with transaction.atomic():
        trigger = locked(pk)
        if trigger is not None:
            _settle(trigger)


def start_again(pk: int) -> Firing | None:
    """Let a firing that failed to start wait for its turn once more; return it. None if that is not possible."""
    found = Firing.objects.filter(pk=pk).values_list("trigger", flat=True).first()
    with transaction.atomic():
        trigger = locked(found) if found else None
        firing = trigger.firings.filter(pk=pk).first() if trigger else None
        if trigger is None or firing is None or not firing.can_start_again:
            return None
        firing.state, firing.reason = FiringState.QUEUED, ""
        firing.save(update_fields=["state", "reason"])
        return _next_or(trigger, firing)


def start_queued(pk: int) -> Firing | None:
    """Start the oldest firing of a trigger that waits, if the turn of the one before has ended."""
    with transaction.atomic():
        trigger = locked(pk)
        return _start_next(trigger) if trigger else None


def _start_next(trigger: Trigger) -> Firing | None:
    if trigger.state in ("paused", "off"):
        return None
    _settle(trigger)
    waiting = trigger.firings.filter(state=FiringState.QUEUED).order_by("pk").first()
    if waiting is None or trigger.firings.filter(open=True).exists():
        return None
    _start(trigger, waiting)
    waiting.save()
    return waiting


def _next_or(trigger: Trigger, firing: Firing) -> Firing:
    """Start what waits first, and return this firing as it is then.

    For a trigger that is paused or switched off, a person asks for this one: it starts, and the others go on waiting.
    """
    if trigger.state in ("paused", "off"):
        _settle(trigger)
        if not trigger.firings.filter(open=True).exists():
            _start(trigger, firing)
            firing.save()
        return firing
    started = _start_next(trigger)
    return started if started and started.pk == firing.pk else firing


def enter(trigger: Trigger, firing: Firing, payload: Payload | None) -> Firing:
    """Let a new firing wait, with what came with it, in the open transaction; start it if nothing is before it."""
    firing.state = FiringState.QUEUED
    firing.save()
    if payload:
        payload.pk, payload.firing = None, firing
        payload.save(force_insert=True)
    crashpoint("after_firing")
    return _next_or(trigger, firing)


def _run(trigger: Trigger) -> Firing:
    """Run a trigger that webhooks fire by hand, with the last payload: it waits its turn, if not too many do."""
    if trigger.firings.filter(state=FiringState.QUEUED).count() >= QUEUED_MOST:
        return trigger.firings.create(state=FiringState.SKIPPED, reason=FULL)
    return enter(trigger, Firing(trigger=trigger), sample_of(trigger))


def sample_of(trigger: Trigger) -> Payload | None:
    """Return the last payload that came for this trigger, of those that are kept."""
    return Payload.objects.filter(firing__trigger=trigger).order_by("-firing").first()


def locked(pk: int) -> Trigger | None:
    """Return the trigger, locked with its owner until the transaction ends; the owner first, as all others do."""
    found = Trigger.objects.filter(pk=pk).values_list("owner", flat=True).first()
    if found is None:
        return None
    User.objects.select_for_update(no_key=True).get(pk=found)
    return Trigger.objects.select_for_update(of=("self",)).select_related("owner", "conversation").filter(pk=pk).first()


def _fire(trigger: Trigger, slot: datetime | None) -> Firing:
    """Enter a firing in the history: what it started, or why it started nothing."""
    _settle(trigger)
    firing = Firing(trigger=trigger, slot=slot)
    earlier = trigger.firings.filter(open=True).select_related("prompt").first()
    if earlier is None and not trigger.firings.filter(state=FiringState.QUEUED).exists():
        _start(trigger, firing)
    elif trigger.overlap == Overlap.QUEUE:
        full = trigger.firings.filter(state=FiringState.QUEUED).count() >= QUEUED_MOST
        firing.state, firing.reason = (FiringState.SKIPPED, FULL) if full else (FiringState.QUEUED, "")
    elif earlier and earlier.prompt and earlier.prompt.state == State.WAITING:
        firing.state, firing.prompt, firing.reason = FiringState.FOLDED, earlier.prompt, WAITS
    else:
        firing.state, firing.reason = FiringState.SKIPPED, RUNS
    firing.save()
    crashpoint("after_firing")
    return firing


def _start(trigger: Trigger, firing: Firing) -> None:
    """Start the turn of a firing, or note why it cannot start. Whether it may is asked now, whatever held before."""
    payload = Payload.objects.filter(firing=firing).first() if trigger.hook and firing.pk else None
    try:
        with transaction.atomic():
            firing.prompt = _started(trigger, payload)
    except (OperationalError, InterfaceError):
        raise  # the database is unavailable: it stays due
    except SiteStopped as error:
        # What came with a webhook comes only once, so it waits until the site goes on.
        firing.state = FiringState.QUEUED if trigger.hook else FiringState.MISSED
        firing.reason = str(error)
    except InvalidInput as error:
        _failed(trigger, firing, f"What it starts does not accept its input any more: {error}")
    except (Deactivated, NotAllowed, UnknownPolicy, OverQuota, BadInput, BadFile) as error:
        _failed(trigger, firing, str(error))
    except Exception as error:  # what apps bring in may raise anything; to look again at once would not help
        logger.exception("a trigger could not start its turn", extra={"trigger": trigger.pk})
        _failed(trigger, firing, f"It could not be started: {type(error).__name__}. The log of the site says more.")
    else:
        firing.state, firing.reason, firing.open = FiringState.STARTED, "", True
        if payload:  # it stays as the sample, in place of the one before
            kept = Payload.objects.filter(firing__trigger=trigger, firing__state=FiringState.STARTED)
            kept.exclude(firing=firing).delete()


def _started(trigger: Trigger, payload: Payload | None) -> Prompt:
    owner = trigger.owner
    limits = quotas.limits(owner.pk)
    if limits.tokens_a_day and (why := quotas.over(quotas.tokens_today(owner.pk), limits.tokens_a_day)):
        raise OverQuota(why)
    if trigger.policy != AGENT:
        found = startable.find_for(owner, trigger.policy)
        where = Conversation(owner=owner, kind=ConversationKind.RUN, title=found.title)
        given = input_of(trigger, found, payload)
        return start_prompt(where, owner, policy=trigger.policy, payload=given, origin=Origin.TRIGGER, trigger=trigger)
    where = trigger.conversation or Conversation(owner=owner, title=trigger.name)
    prompt = start_prompt(
        where,
        owner,
        tier=trigger.tier,
        origin=Origin.TRIGGER,
        trigger=trigger,
        reminder=trigger.text,
        files=[payload_file(payload)] if payload else (),
    )
    if trigger.conversation_id is None:
        Trigger.objects.filter(pk=trigger.pk).update(conversation=prompt.conversation)
        trigger.conversation = prompt.conversation
    return prompt


def _settle(trigger: Trigger) -> None:
    ended = trigger.firings.filter(open=True).filter(Q(prompt=None) | Q(prompt__state__in=ENDED))
    for firing in ended.select_related("prompt").order_by("pk"):
        Firing.objects.filter(pk=firing.pk).update(open=False)
        if firing.prompt and firing.prompt.state == State.FAILED:
            _count_failure(trigger, f"Its turn failed: {firing.prompt.stop_reason}.", firing.prompt)
        elif firing.prompt and firing.prompt.state == State.COMPLETED and trigger.failures:
            trigger.failures = 0
            trigger.save(update_fields=["failures"])


def _failed(trigger: Trigger, firing: Firing, why: str) -> None:
    firing.state, firing.reason = FiringState.FAILED, why
    _count_failure(trigger, why)


def _count_failure(trigger: Trigger, why: str, prompt: Prompt | None = None) -> None:
    """Count a failure, and switch the trigger off after as many in a row as the setting says."""
    trigger.failures += 1
    most = settings.AGENTSITE_TRIGGER_FAILURES
    if off := trigger.failures >= most and not trigger.off_reason:
        trigger.off_reason = f"It failed {trigger.failures} times in a row."
        title = f"{trigger.name}: it failed {trigger.failures} times in a row"
        notify(trigger.owner, NoticeKind.TRIGGER, title=title, link=trigger.get_absolute_url())
    trigger.save(update_fields=["failures", "off_reason"])
    tell_of_failure(trigger, why, prompt, off=off)
