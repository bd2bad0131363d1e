"""The site as a contender, on a fresh database of its own.

`turn` runs in this process, in a drain that has run turns before: PostgreSQL plans the first statements of a session
anew. What is measured is the sending of the message, and the time from the turn's claim to its end. How soon a worker
finds it is no part of that; it is part of `many` and `approvals`, which are run by real workers (`manage.py worker`),
with the messages and decisions of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from bench import support
from bench.peers.line import Figures, serve
from bench.peers.size import stored_bytes
from bench.peers.task import ASK, task
from bench.processes import PATIENCE_SECONDS, started

T = TypeVar("T")

LOOK_SECONDS = 0.02
"""Between two looks whether something has happened."""
WARM_TURNS = 8
"""Turns that are run before they are measured: every process has then loaded what it needs."""
SETTINGS = {
    "AGENTSITE_MODEL_API": "chat",
    "AGENTSITE_MAX_ROUNDS": "100000",
    "AGENTSITE_TURN_SECONDS": "86400",
    "AGENTSITE_PROMPTS_AT_ONCE": "0",
}


class Ours:
    """The site. Its turns are those of one person, each in a conversation of its own."""

    async def turn(self, rounds: int) -> Figures:
        """Run one turn. Returns its wall and CPU seconds, and how much more the database holds."""
        from conversations.prompts.signals import released

        drain, ended = await sync_to_async(support.new_drain)(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def note(**_: object) -> None:
            loop.call_soon_threadsafe(ended.set)

        released.connect(note)
        running = asyncio.create_task(drain())
        try:
            for _ in range(WARM_TURNS):
                await sync_to_async(_send)(task(2))
                await ended.wait()
                ended.clear()
            before = stored_bytes(_database())
            wall, cpu = time.perf_counter(), time.process_time()
            prompt = await sync_to_async(_send)(task(rounds))
            sending = time.perf_counter() - wall
            await ended.wait()
            cpu = time.process_time() - cpu
        finally:
            released.disconnect(note)
            drain.stop()
            await running
        seconds = sending + await sync_to_async(_ran)(prompt)
        return {"seconds": seconds, "cpu": cpu, "bytes": stored_bytes(_database()) - before}

    async def many(self, turns: int, rounds: int, delay_ms: int, drains: str = "", workers: int = 1) -> Figures:
        """Run so many turns at once. Returns the seconds from the first message, and from the first claim, to the end.

        `drains`: AGENTSITE_DRAINS of each worker; "": the default. `workers`: how many there are, each as on a host.
        """
        return await sync_to_async(_many)(task(rounds, delay_ms=delay_ms), turns, drains, workers)

    async def approvals(self, times: int) -> Figures:
        """Return the seconds from each decision to the start of the tool, and from as many messages to their claims."""
        return await sync_to_async(_approvals)(times)

    async def close(self) -> None:
        """Do nothing: the database goes with the process."""


def _database() -> str:
    from django.conf import settings

    return os.environ.get("DATABASE_URL") or str(settings.DATABASES["default"]["NAME"])


def _send(said: str) -> int:
    from conversations.prompts.start import begin_conversation

    return begin_conversation(support.person(), said).pk


def _ran(prompt: int) -> float:
    """Return the seconds from the claim of a turn to its end."""
    from conversations.models import Prompt, State

    ran = Prompt.objects.get(pk=prompt)
    assert ran.state == State.COMPLETED, ran.state
    assert ran.ended_at
    assert ran.claimed_at
    return ran.ended_at.timestamp() - ran.claimed_at


def _many(said: str, turns: int, drains: str, workers: int) -> Figures:
    from django.db.models import Max, Min

    from conversations.models import Prompt, State

    with _running(drains, workers):
        began = time.time()
        sent = [_send(said) for _ in range(turns)]
        _wait_for(lambda: Prompt.objects.filter(pk__in=sent).ended().count() == turns)
        ran = Prompt.objects.filter(pk__in=sent)
        assert set(ran.values_list("state", flat=True)) == {State.COMPLETED}
        times = ran.aggregate(claimed=Min("claimed_at"), ended=Max("ended_at"))
    ended = times["ended"].timestamp()
    return {"seconds": ended - began, "from_claim": ended - times["claimed"]}


def _approvals(times: int) -> Figures:
    from django.contrib.auth.models import Permission

    from conversations.models import Output

    support.person().user_permissions.add(Permission.objects.get(codename="decide_own_approval"))
    with _running("", 1):
        sent = [_send(task(1, ASK)) for _ in range(times)]
        _wait_for(lambda: Output.objects.pending().filter(prompt__in=sent).count() == times)
        approved = [_approved(prompt) for prompt in sent]
        return {"seconds": approved, "claimed": [_claimed() for _ in range(times)]}


def _approved(prompt: int) -> float:
    """Approve the call of this turn at some moment. Returns the seconds from before that to the start of the tool."""
    from conversations.approvals.decisions import decide
    from conversations.models import Output, Prompt

    gate = Output.objects.pending().get(prompt=prompt)
    time.sleep(random.uniform(0.1, 0.4))
    decided = time.monotonic()
    decide(gate.pk, support.person(), "approve", digest=gate.digest, via="page")
    _wait_for(lambda: Prompt.objects.filter(pk=prompt).ended().exists())
    return float(Output.objects.get(pk=gate.pk).content["result"]["output"]) - decided


def _claimed() -> float:
    """Send a message at some moment. Returns the seconds from its commit until a worker claims its turn."""
    from django.db import transaction

    from conversations.models import Prompt

    committed: list[float] = []
    time.sleep(random.uniform(0.1, 0.4))
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.time()))  # before anybody is told of it
        prompt = _send(task(1))
    _wait_for(lambda: Prompt.objects.filter(pk=prompt).ended().exists())
    return Prompt.objects.get(pk=prompt).claimed_at - committed[0]


@contextmanager
def _running(drains: str, workers: int) -> Iterator[None]:
    """Workers that run turns, while the block runs. Each has a name of its own, as if it were on a host of its own."""
    from conversations.models import Prompt
    from conversations.worker import hosts

    with ExitStack() as stack:
        for number in range(workers):
            host = f"bench-{number}"
            with _environment(AGENTSITE_HOST=host, **({"AGENTSITE_DRAINS": drains} if drains else {})):
                pid = stack.enter_context(started("manage.py", "worker"))
            _wait_for(partial(hosts.is_ready, host, pid))
        sent = [_send(task(1)) for _ in range(WARM_TURNS * workers)]
        _wait_for(lambda: Prompt.objects.filter(pk__in=sent).ended().count() == len(sent))
        yield


@contextmanager
def _environment(**settings: str) -> Iterator[None]:
    """The environment of processes that are started in the block."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _wait_for(happened: Callable[[], Any]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > give_up:
            raise SystemExit("What was waited for did not happen.")
        time.sleep(LOOK_SECONDS)


def main() -> None:
    """Do what the run asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    parser.add_argument("database", choices=("sqlite", "postgres"))
    options = parser.parse_args()
    with support.site(options.database, options.base_url, **SETTINGS):
        serve(Ours())


if __name__ == "__main__":
    main()
