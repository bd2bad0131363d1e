"""Worker hosts: the leases of a host's drains, its heartbeat, and the stop mark."""

from __future__ import annotations

import os
import socket
import uuid

from django.conf import settings
from django.db.models import Exists, F

from agents.engine import actors
from conversations.database.hints import hint_workers
from conversations.database.sql import Clock, database_time
from conversations.ledger.claims import holders, lapse
from conversations.models import Drain, Worker
from conversations.worker.processes import is_gone, this_process

PARENT = "AGENTSITE_WORKER_PID"
"""Environment variable of a cluster's processes: the process id of their `manage.py worker`."""


def this_host() -> str:
    """Return this host's name among the workers: `AGENTSITE_HOST`, in case the system's own name is not unique."""
    return os.environ.get("AGENTSITE_HOST") or socket.gethostname()


def take_drain(host: str, number: int, token: str, lease_seconds: float) -> bool:
    """Become the host's drain with this number. Returns False if it has a live one."""
    Worker.objects.get_or_create(host=host)
    Drain.objects.get_or_create(host=host, number=number)
    free = Drain.objects.filter(host=host, number=number, until__lt=Clock())
    return bool(free.update(token=token, until=Clock() + lease_seconds))


def give_up_drain(host: str, token: str) -> None:
    """Let another process have the number of this drain at once."""
    Drain.objects.filter(host=host, token=token).update(until=0)


def keep_drain(host: str, token: str, lease_seconds: float) -> None:
    """Renew the drain's lease, unless another process has its number now."""
    Drain.objects.filter(host=host, token=token).update(until=Clock() + lease_seconds)


def new_token() -> str:
    """Return a token for a drain in this process: its name, so that its death is noticed, and a random part."""
    return f"{this_process()}/{uuid.uuid4().hex}"


def worker_name(host: str, process: str) -> str:
    """Return the actor as which this process of a host runs turns."""
    return actors.worker(f"{host}/{process}")


def bury_dead(host: str) -> None:
    """End the leases of processes of this host that are no longer there, and free the numbers of such drains.

    Without this, the lease's length would pass before their turns go on. They are found by their leases: one that was
    told to end for another to take its place may hold some, and die, after that.
    """
    for worker in holders():
        process = worker.rpartition("/")[2]
        if worker == worker_name(host, process) and is_gone(process):
            lapse(worker)
    for token in live_drains(host).values():
        if is_gone(process_of(token)):
            give_up_drain(host, token)


def process_of(token: str) -> str:
    """Return the name of the process that made this token."""
    return token.partition("/")[0]


def live_drains(host: str) -> dict[int, str]:
    """Return the tokens of the host's drains, by their numbers."""
    return dict(Drain.objects.filter(host=host, until__gt=Clock()).values_list("number", "token"))


def lapsed_drains(host: str) -> dict[int, str]:
    """Return the tokens of the host's drains that have neither renewed their leases nor given them up, by number."""
    return dict(Drain.objects.filter(host=host, until__gt=0, until__lte=Clock()).values_list("number", "token"))


def begin(host: str, pid: int) -> float:
    """Prepare for a new cluster on this host: clear the stop mark, and free all numbers of drains. Return the time.

    A drain of an earlier cluster that is still running notices at its next look.
    """
    bury_dead(host)
    at = database_time()
    new = {"pid": pid, "started_at": at, "beat_at": at, "stopping": False, "drains": settings.AGENTSITE_DRAINS}
    Worker.objects.update_or_create(host=host, defaults=new)
    Drain.objects.filter(host=host).delete()
    return at


def stop(host: str) -> None:
    """Write the stop mark, which the host's drains read."""
    Worker.objects.filter(host=host).update(stopping=True)
    hint_workers()


def go_on(host: str, pid: int) -> None:
    """Remove the stop mark, if this parent's cluster is the current one."""
    Worker.objects.filter(host=host, pid=pid, stopping=True).update(stopping=False)


def beat(host: str) -> None:
    """Record that a background task of this host ran."""
    Worker.objects.filter(host=host).update(beat_at=database_time())


def is_ready(host: str, pid: int, since: float = 0) -> bool:
    """Whether the cluster of this parent runs background tasks and has a drain, so that turns are taken up.

    It must have started after `since`, by the database's clock: in a container, process ids repeat from run to run.
    """
    drain = Drain.objects.filter(host=host, until__gt=Clock())
    begun = Worker.objects.filter(Exists(drain), host=host, pid=pid, started_at__gt=since, beat_at__gt=F("started_at"))
    return begun.exists()


def last_beat(host: str) -> float:
    """Return when a background task of this host last ran; 0 if none ever did."""
    return Worker.objects.filter(host=host).values_list("beat_at", flat=True).first() or 0.0
