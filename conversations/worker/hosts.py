"""Worker hosts: the lease of a host's one drain, its heartbeat, and the stop mark."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.models import F

from agents.engine import actors
from conversations.database.sql import Clock, database_time
from conversations.ledger.claims import Claim, holders, lapse
from conversations.models import KillSwitch, Step, Worker
from conversations.prompts.killswitch import active_switch
from conversations.worker.processes import is_gone, this_process

PARENT = "AGENTSITE_WORKER_PID"
"""Environment variable of a cluster's processes: the process id of their `manage.py worker`."""


@dataclass
class StopRequests:
    """What a drain is to stop: itself, the prompts that were cancelled, and all of them while the kill switch is on."""

    stopping: bool = False
    cancelled: set[int] = field(default_factory=set)
    switch: KillSwitch | None = None


def this_host() -> str:
    """Return this host's name among the workers: `AGENTSITE_HOST`, in case the system's own name is not unique."""
    return os.environ.get("AGENTSITE_HOST") or socket.gethostname()


def take_drain(host: str, token: str, lease_seconds: float) -> bool:
    """Become the host's drain. Returns False if it has a live one."""
    Worker.objects.get_or_create(host=host)
    free = Worker.objects.filter(host=host, drain_until__lt=Clock())
    return bool(free.update(drain=token, drain_until=Clock() + lease_seconds))


def give_up_drain(host: str, token: str) -> None:
    """Let another process be the host's drain at once."""
    Worker.objects.filter(host=host, drain=token).update(drain_until=0)


def keep_drain(host: str, token: str, lease_seconds: float) -> None:
    """Renew the drain's lease, unless another process has it now."""
    Worker.objects.filter(host=host, drain=token).update(drain_until=Clock() + lease_seconds)


def stop_requests(host: str, token: str, held: Collection[Claim]) -> StopRequests:
    """Read whether this drain is to stop, the cancellations of the prompts that are `held`, and the kill switch."""
    stopping = not _may_go_on(host, token)
    if not held:
        return StopRequests(stopping)
    conversations, prompts = {claim.conversation for claim in held}, {claim.prompt for claim in held}
    cancels = Step.objects.filter(conversation__in=conversations, prompt__in=prompts, type="cancel").order_by()
    return StopRequests(stopping, set(cancels.values_list("prompt_id", flat=True)), active_switch())


def _may_go_on(host: str, token: str) -> bool:
    """Whether the host has no stop mark, no other drain, and no other parent whose cluster is running."""
    mine = Worker.objects.filter(host=host, drain=token, stopping=False)
    if parent := os.environ.get(PARENT):
        mine = mine.filter(pid=int(parent))
    return mine.exists()


def new_token() -> str:
    """Return a token for a drain in this process: its name, so that its death is noticed, and a random part."""
    return f"{this_process()}/{uuid.uuid4().hex}"


def worker_name(host: str, process: str) -> str:
    """Return the actor as which this process of a host runs turns."""
    return actors.worker(f"{host}/{process}")


def bury_dead(host: str) -> None:
    """End the leases of processes of this host that are no longer there, and free the drain's place of one.

    Without this, the lease's length would pass before their turns go on. They are found by their leases: one that was
    told to end for another to take its place may hold some, and die, after that.
    """
    for worker in holders():
        process = worker.rpartition("/")[2]
        if worker == worker_name(host, process) and is_gone(process):
            lapse(worker)
    for token in Worker.objects.filter(host=host, drain_until__gt=Clock()).values_list("drain", flat=True):
        if is_gone(token.partition("/")[0]):
            give_up_drain(host, token)


def drain_is_free(host: str) -> bool:
    """Whether the host has no live drain."""
    return not Worker.objects.filter(host=host, drain_until__gt=Clock()).exists()


def begin(host: str, pid: int) -> float:
    """Prepare for a new cluster on this host: clear the stop mark, and free the drain. Return the time.

    A drain of an earlier cluster that is still running notices at its next poll.
    """
    bury_dead(host)
    at = database_time()
    new = {"pid": pid, "started_at": at, "beat_at": at, "stopping": False, "drain": "", "drain_until": 0}
    Worker.objects.update_or_create(host=host, defaults=new)
    return at


def stop(host: str) -> None:
    """Write the stop mark, which the host's drain reads."""
    Worker.objects.filter(host=host).update(stopping=True)


def go_on(host: str, pid: int) -> None:
    """Remove the stop mark, if this parent's cluster is the current one."""
    Worker.objects.filter(host=host, pid=pid, stopping=True).update(stopping=False)


def beat(host: str) -> None:
    """Record that a background task of this host ran."""
    Worker.objects.filter(host=host).update(beat_at=database_time())


def is_ready(host: str, pid: int, since: float = 0) -> bool:
    """Whether the cluster of this parent has run a background task, so that turns are taken up.

    It must have started after `since`, by the database's clock: in a container, process ids repeat from run to run.
    """
    return Worker.objects.filter(host=host, pid=pid, started_at__gt=since, beat_at__gt=F("started_at")).exists()


def last_beat(host: str) -> float:
    """Return when a background task of this host last ran; 0 if none ever did."""
    return Worker.objects.filter(host=host).values_list("beat_at", flat=True).first() or 0.0
