"""Checking all ledgers, nightly by schedule and by hand. The results are kept."""

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
"""Runs that are kept."""
PROBLEMS_MOST = 20
"""Problems of a run whose text is kept; the others are only counted."""
LINE_MOST = 300
"""Characters kept of each problem."""
NIGHT = timedelta(hours=12)
"""A run that began within this time counts as tonight's."""
BEAT = timedelta(minutes=1)
"""How often a run records that it is still going."""
BROKEN_OFF = timedelta(hours=1)
"""A run without a beat for this long has broken off. Longer than checking any one conversation takes."""
LATE = timedelta(hours=36)
"""The age of the last run from which the nightly check counts as overdue."""
SCHEDULE = "verify_ledger"
TASK = "conversations.worker.tasks.nightly"
AT = time(3, 17)
"""The time of the nightly check, in the site's time zone: few people work then, and few jobs start at that minute."""


def verify_all(tell: Callable[[str], object]) -> Verification:
    """Check every conversation, one after the other, and keep the result.

    `tell` is called with each problem, as one line. A conversation that is erased meanwhile is not a problem.
    """
    return _run(Verification.objects.create(), tell, lambda: None)


def verify_nightly(alive: Callable[[], object]) -> Verification | None:
    """Do the nightly check. Returns None if it was already started tonight, unless that run broke off.

    Checks by hand do not count.
    """
    with transaction.atomic():
        list(Schedule.objects.select_for_update().filter(name=SCHEDULE))  # simultaneous callers take turns
        begun = Verification.objects.filter(nightly=True, started_at__gt=timezone.now() - NIGHT)
        if begun.filter(Q(ended_at__isnull=False) | Q(beat_at__gt=timezone.now() - BROKEN_OFF)).exists():
            return None
        run = Verification.objects.create(nightly=True)
    return _run(run, logger.error, alive)


def nightly_broke_off() -> bool:
    """Whether a nightly check broke off, and no check has been completed since."""
    ended = Verification.objects.exclude(ended_at=None).order_by("-pk").values_list("pk", flat=True).first()
    begun = Verification.objects.filter(nightly=True, ended_at=None, pk__gt=ended or 0)
    return begun.filter(beat_at__lt=timezone.now() - BROKEN_OFF).exists()


def ensure_schedule() -> None:
    """Make sure that the nightly check is scheduled exactly once."""
    with transaction.atomic():
        rows = list(Schedule.objects.select_for_update().filter(name=SCHEDULE).order_by("pk"))
        Schedule.objects.filter(pk__in=[row.pk for row in rows[1:]]).delete()  # hosts that started at the same moment
        wanted = {"func": TASK, "schedule_type": Schedule.DAILY, "repeats": -1}
        if not Schedule.objects.filter(name=SCHEDULE).update(**wanted):
            Schedule.objects.create(name=SCHEDULE, next_run=_next_night(timezone.localtime()), **wanted)


def _next_night(now: datetime) -> datetime:
    night = now.replace(hour=AT.hour, minute=AT.minute, second=0, microsecond=0)
    return night if night > now else night + timedelta(days=1)


def _run(run: Verification, tell: Callable[[str], object], alive: Callable[[], object]) -> Verification:
    lines: list[str] = []
    # A list, not a cursor: an open cursor keeps SQLite's snapshot, and this run could not write after others' commits.
    for pk in list(Conversation.objects.order_by("pk").values_list("pk", flat=True)):
        alive()
        if timezone.now() - run.beat_at > BEAT:
            _store_progress(run, lines)
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
            if len(lines) < PROBLEMS_MOST:
                lines.append(line[:LINE_MOST].replace("\n", " "))
    run.ended_at = timezone.now()
    _store_progress(run, lines)
    old = Verification.objects.order_by("-pk").values_list("pk", flat=True)[KEPT_MOST:]
    Verification.objects.filter(pk__in=list(old)).delete()
    return run


def _store_progress(run: Verification, lines: list[str]) -> None:
    """Store the progress of a run."""
    run.problems, run.beat_at = "\n".join(lines), timezone.now()
    run.save()
