"""Health: the state of workers and queue for the admin's first page, and `/healthz` for monitors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, JsonResponse

from conversations.database.disk import is_short
from conversations.database.sql import database_time
from conversations.ledger.claims import claimable, held
from conversations.models import Drain, Prompt, State, Step, Worker
from conversations.prompts.killswitch import active_switch

QUEUE_MOST = 1000
"""Queued turns are counted up to this number."""


@dataclass(frozen=True)
class Host:
    """The worker of one host: seconds since its last beat, the turns it holds, and whether it was told to stop.

    `drains`: how many of its drains are there, of those `wanted`.
    """

    name: str
    beat_seconds: float
    running: int
    stopping: bool
    drains: int
    wanted: int

    @property
    def alive(self) -> bool:
        """Whether this host takes up turns."""
        return not self.stopping and self.drains > 0 and self.beat_seconds < settings.AGENTSITE_BEAT_SECONDS


def hosts() -> list[Host]:
    """Return all hosts that ever had a worker, by name, with four queries."""
    time = database_time()
    workers = held().filter(state=State.RUNNING).values_list("worker", flat=True)
    running = Counter(worker.removeprefix("worker:").rpartition("/")[0] for worker in workers)
    drains = Counter(Drain.objects.filter(until__gt=time).values_list("host", flat=True))
    return [
        Host(row.host, max(time - row.beat_at, 0.0), running[row.host], row.stopping, drains[row.host], row.drains)
        for row in Worker.objects.order_by("host")
    ]


def queue() -> list[int]:
    """Return the ids of turns that a worker could take up now, oldest first, at most QUEUE_MOST."""
    return claimable(QUEUE_MOST)


def waiting_since(prompts: list[int]) -> datetime | None:
    """Return the time of the last step of the turn that has been idle for longest; None if there is none."""
    last = (
        Step.objects.filter(conversation=OuterRef("conversation"), prompt=OuterRef("pk"))
        .order_by("-seq")
        .values("time")[:1]
    )
    times = Prompt.objects.filter(pk__in=prompts).annotate(since=Subquery(last)).values_list("since", flat=True)
    return min(filter(None, times), default=None)


def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the database and disk are writable and a worker takes up turns; else 503 with the reason.

    `stopped` says whether the kill switch is on: turns wait then, but the site is healthy.
    """
    report, ok = _report()
    response = JsonResponse({"ok": ok, **report}, status=200 if ok else 503)
    response._has_been_logged = True  # type: ignore[attr-defined]  # a 503 is this view's way of saying no, not an error
    return response


def _report() -> tuple[dict[str, Any], bool]:
    try:
        known = [host for host in hosts() if not host.stopping]
        alive = sum(host.alive for host in known)
        last = min((round(host.beat_seconds, 1) for host in known), default=None)
        full = is_short()
        report = {"database": "ok", "disk": "full" if full else "ok", "workers": alive, "last_beat_seconds": last}
        report |= {"drains": sum(host.drains for host in known), "drains_wanted": sum(host.wanted for host in known)}
        return report | {"queue": len(queue()), "stopped": active_switch() is not None}, bool(alive) and not full
    except Error:
        return {"database": "unreachable"}, False
