"""Checking every ledger: each night by schedule, and by hand. What came of it is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, time, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django_q.models import Schedule

from conversations.models import Conversation, Verification
from conversations.verification.stored import verify

logger = logging.getLogger(__name__)

KEPT_MOST = 30
"""Runs that are remembered."""
PROBLEMS_MOST = 20
"""Problems of a run that are remembered in words; the others are counted."""
LINE_MOST = 300
"""Characters of each."""
NIGHT = timedelta(hours=12)
"""A run that began so long ago at most was this night's."""
BEAT = timedelta(minutes=1)
"""How often a run says that it goes on."""
BROKEN_OFF = timedelta(hours=1)
"""A run that has not gone on for so long never will: longer than any one conversation takes."""
LATE = timedelta(hours=36)
"""After which the check of a night has failed to come."""
SCHEDULE = "verify_ledger"
TASK = "conversations.worker.tasks.nightly"
AT = time(3, 17)
"""When in the site's time zone: few work then, and few jobs begin at that minute."""


def verify_all(tell: Callable[[str], object], alive: Callable[[], object] = lambda: None) -> Verification:
    """Check every conversation, one after the other, and keep what came of it.

    `tell` is called with each problem as a line, `alive` again and again. What is erased meanwhile is none.
    """
    return _run(Verification.objects.create(), tell, alive)


def verify_nightly(alive: Callable[[], object]) -> Verification | None:
    """The same, once a night, however many ask; None where another one has begun it, and did not break off.

    What people check by hand is beside that.
    """
    with transaction.atomic():
        list(Schedule.objects.select_for_update().filter(name=SCHEDULE))  # those who ask at once go one by one
        begun = Verification.objects.filter(nightly=True, started_at__gt=timezone.now() - NIGHT)
        if begun.filter(Q(ended_at__isnull=False) | Q(beat_at__gt=timezone.now() - BROKEN_OFF)).exists():
            return None
        run = Verification.objects.create(nightly=True)
    return _run(run, logger.error, alive)


def nightly_broke_off() -> bool:
    """Whether the check of a night broke off, and none came to its end since."""
    ended = Verification.objects.exclude(ended_at=None).order_by("-pk").values_list("pk", flat=True).first()
    begun = Verification.objects.filter(nightly=True, ended_at=None, pk__gt=ended or 0)
    return begun.filter(beat_at__lt=timezone.now() - BROKEN_OFF).exists()


def ensure_schedule() -> None:
    """See to it that the check stands in the schedule, once."""
    with transaction.atomic():
        rows = list(Schedule.objects.select_for_update().filter(name=SCHEDULE).order_by("pk"))
        Schedule.objects.filter(pk__in=[row.pk for row in rows[1:]]).delete()  # of hosts that started at one moment
        wanted = {"func": TASK, "schedule_type": Schedule.DAILY, "repeats": -1}
        if not rows:
            Schedule.objects.create(name=SCHEDULE, next_run=_next_night(timezone.localtime()), **wanted)
        elif any(getattr(rows[0], name) != value for name, value in wanted.items()):
            Schedule.objects.filter(pk=rows[0].pk).update(**wanted)


def _next_night(now: datetime) -> datetime:
    night = now.replace(hour=AT.hour, minute=AT.minute, second=0, microsecond=0)
    return night if night > now else night + timedelta(days=1)


def _run(run: Verification, tell: Callable[[str], object], alive: Callable[[], object]) -> Verification:
    said: list[str] = []
    # A list, no cursor: one that is open keeps SQLite's snapshot, and with others' commits this one could not write.
    for pk in list(Conversation.objects.order_by("pk").values_list("pk", flat=True)):
        alive()
        if timezone.now() - run.beat_at > BEAT:
            _keep(run, said)
        try:
            found = verify(pk, alive)
        except Conversation.DoesNotExist:
            continue
        run.conversations += 1
        run.steps += found.steps
        run.count += len(found.problems)
        for problem in found.problems:
            line = f"conversation {pk}, {problem}"
            tell(line)
            if len(said) < PROBLEMS_MOST:
                said.append(line[:LINE_MOST].replace("\n", " "))
    run.ended_at = timezone.now()
    _keep(run, said)
    old = Verification.objects.order_by("-pk").values_list("pk", flat=True)[KEPT_MOST:]
    Verification.objects.filter(pk__in=list(old)).delete()
    return run


def _keep(run: Verification, said: list[str]) -> None:
    """Store how far a run has come."""
    run.problems, run.beat_at = "\n".join(said), timezone.now()
    run.save()
