"""A host's rows: the one drain it may hold, its beat, and the mark that stops it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Q

from conversations.database.sql import database_time, now
from conversations.models import Drain, KillSwitch, Step, Worker
from conversations.prompts.killswitch import standing

PARENT = "AGENTSITE_WORKER_PID"
"""The variable that tells a cluster's processes whose they are: the process id of their `manage.py worker`."""


@dataclass
class Seen:
    """What a drain sees when it looks: whether to stop, whose turns were stopped, the kill switch while it is on."""

    stopping: bool = False
    cancelled: set[int] = field(default_factory=set)
    switch: KillSwitch | None = None


def this_host() -> str:
    """The name of this host among the workers; `AGENTSITE_HOST` where the system's own is not one of a kind."""
    return os.environ.get("AGENTSITE_HOST") or socket.gethostname()


def take_drain(host: str, token: str, lease_seconds: float) -> bool:
    """Become the host's drain; False where a living one is."""
    Drain.objects.get_or_create(host=host)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE conversations_drain SET token = %s, lease_until = {now()} + %s"
            f" WHERE host = %s AND lease_until < {now()}",
            [token, lease_seconds, host],
        )
        return bool(cursor.rowcount == 1)


def give_up_drain(host: str, token: str) -> None:
    """Let another process be the host's drain at once."""
    Drain.objects.filter(host=host, token=token).update(lease_until=0)


def keep_drain(host: str, token: str, lease_seconds: float) -> bool:
    """Prolong the drain's lease; False where it has passed to another process."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE conversations_drain SET lease_until = {now()} + %s WHERE host = %s AND token = %s",
            [lease_seconds, host, token],
        )
        return bool(cursor.rowcount == 1)


def look(host: str, held: list[int]) -> Seen:
    """Read the stop mark, and what stops the `held` prompts: somebody one of them, the kill switch all."""
    stopping = Worker.objects.filter(_tells_to_stop(), host=host).exists()
    if not held:
        return Seen(stopping)
    cancels = Step.objects.filter(prompt_id__in=held, type="cancel").order_by()
    return Seen(stopping, set(cancels.values_list("prompt_id", flat=True)), standing())


def _tells_to_stop() -> Q:
    """What a host's row says when this process is to stop: the mark, or that another parent's cluster is at work."""
    parent = os.environ.get(PARENT)
    return Q(stopping=True) | ~Q(pid=int(parent)) if parent else Q(stopping=True)


def drain_is_free(host: str) -> bool:
    """Whether no living drain is on the host."""
    return not Drain.objects.filter(host=host, lease_until__gt=database_time()).exists()


def begin(host: str, pid: int) -> float:
    """A cluster starts on this host: clear the stop mark, and let it drain at once. Returns when that was.

    A drain of an earlier cluster that still runs learns of it at its next look.
    """
    at = database_time()
    Worker.objects.update_or_create(
        host=host, defaults={"pid": pid, "started_at": at, "beat_at": at, "stopping": False}
    )
    Drain.objects.filter(host=host).update(token="", lease_until=0)
    return at


def stop(host: str) -> None:
    """Write the stop mark, which the host's drain reads."""
    Worker.objects.filter(host=host).update(stopping=True)


def go_on(host: str, pid: int) -> None:
    """Take the stop mark away, where this parent's cluster is the one at work."""
    Worker.objects.filter(host=host, pid=pid, stopping=True).update(stopping=False)


def beat(host: str) -> None:
    """A background task of this host ran."""
    Worker.objects.filter(host=host).update(beat_at=database_time())


def last_beat(host: str) -> float:
    """When a background task of this host last ran; 0 if none ever did."""
    return Worker.objects.filter(host=host).values_list("beat_at", flat=True).first() or 0.0
