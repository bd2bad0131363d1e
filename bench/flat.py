"""What a turn costs against how much there is: it should be the same, however much that is.

For each size a fresh site is filled, and then turns are run in a drain in this process, against the scripted model of
`bench.peers`. `start` is a turn without a call of a tool, from its claim to its end; `round` is what each further round
adds. Milliseconds are CPU of the loop's and of the database's thread, medians; statements are counted on the way. Where
people watch, each over a WebSocket, `web ms` is the CPU of the web process for the turn of ROUNDS rounds.
`exponent` is the slope of the cost against the size, both as logarithms, from the first size to the last: 0 is flat, 1
is as much again for each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import support
from bench.clients import Client, Site, listening
from bench.copies import copy
from bench.drained import DATABASE_THREAD, drained
from bench.peers.task import ASK, task
from bench.processes import await_answer, cpu_seconds, free_port, started
from bench.statements import is_transaction, recorded

AXES: dict[str, list[int]] = {
    "rounds": [10, 50, 200],
    "turns": [5, 50, 500],
    "conversations": [10, 100, 1000],
    "approvals": [10, 100, 1000],
    "steps": [1_000, 10_000, 100_000],
    "plugins": [1, 5, 20],
    "tools": [20, 100, 500],
    "watching": [1, 10, 100],
}
"""What is varied, and how much there is of it by default."""
ROUNDS = 10
"""Of the turn that shows what a round costs."""
ROUNDS_OF_STEPS = 100
"""Of each turn that is there for its steps."""
SETTINGS = {
    "AGENTSITE_MODEL_API": "chat",
    "AGENTSITE_MAX_ROUNDS": "100000",
    "AGENTSITE_TURN_SECONDS": "86400",
    "AGENTSITE_PROMPTS_AT_ONCE": "0",
    "AGENTSITE_APPS": "bench,bench.crowd",
}
FIGURES = ("start ms", "start statements", "round ms", "round statements")
WEB = "web ms"
SETTLED_SECONDS = 1.0
"""How long what a turn recorded may take to reach those who watch."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one size of one axis."""
    port, of_environment = free_port(), {}
    if options.axis in ("plugins", "tools"):
        of_environment = {f"BENCH_{options.axis.upper()}": str(options.size)}
    if options.axis == "watching":
        of_environment = {"PORT": str(free_port()), "AGENTSITE_STREAMS": str(options.size)}
    with started("-m", "bench.peers.model", f"--port={port}"):
        await_answer(f"http://127.0.0.1:{port}/")
        with support.site(options.database, f"http://127.0.0.1:{port}/v1", **SETTINGS, **of_environment):
            _turn(0)
            conversation = _filled(options.axis, options.size)
            rounds = options.size if options.axis == "rounds" else ROUNDS
            _turn(1, conversation)
            with _watched(conversation, options) as web:
                found = [_look(rounds, conversation, web) for _ in range(options.times)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


@contextmanager
def _watched(conversation: Any, options: argparse.Namespace) -> Iterator[int | None]:
    """Let so many people watch the conversation. Yields the process id of the web server; None if nobody does."""
    if options.axis != "watching":
        yield None
        return
    from django.test import Client as Browser

    (browser := Browser()).force_login(support.person())
    site = Site(int(os.environ["PORT"]), ("sessionid", browser.cookies["sessionid"].value))
    over, ready = threading.Event(), threading.Event()

    async def watch() -> None:
        async with listening([Client(conversation.pk) for _ in range(options.size)], site):
            ready.set()
            await asyncio.to_thread(over.wait)

    with started("-m", "agentsite.web") as web:
        await_answer(f"{site.origin}/login/")
        watching = threading.Thread(target=asyncio.run, args=[watch()])
        watching.start()
        ready.wait()
        try:
            yield web
        finally:
            over.set()
            watching.join()


def _look(rounds: int, conversation: Any, web: int | None) -> dict[str, float]:
    start_ms, start_statements = _turn(0, conversation)
    before = cpu_seconds(web) if web else 0
    whole_ms, whole_statements = _turn(rounds, conversation)
    each = ((whole_ms - start_ms) / rounds, (whole_statements - start_statements) / rounds)
    found = dict(zip(FIGURES, (start_ms, start_statements, *each), strict=True))
    if web:
        time.sleep(SETTLED_SECONDS)
        found[WEB] = (cpu_seconds(web) - before) * 1000
    return found


def _turn(rounds: int, conversation: Any = None) -> tuple[float, float]:
    """Run a turn, in a conversation of its own if there is none. Returns CPU milliseconds and statements."""
    _send(task(rounds), conversation)
    with recorded(DATABASE_THREAD) as sent:
        took = drained(1)
    drains_end = "hosts."  # it gives its number back
    count = sum(
        cost.count for each, cost in sent.items() if not is_transaction(each) and not each.caller.startswith(drains_end)
    )
    return (took["loop"] + took["database"]) * 1000, count


def _send(said: str, conversation: Any = None) -> Any:
    from conversations.prompts.start import begin_conversation, start_prompt

    owner = support.person()
    return start_prompt(conversation, owner, said) if conversation else begin_conversation(owner, said)


def _filled(axis: str, size: int) -> Any:
    """Fill the site. Returns the conversation in which turns are to run, None for new ones.

    One of each kind is made by a worker, the others are copies of it; the turns of one conversation are all real ones.
    """
    if axis in ("rounds", "plugins", "tools"):
        return None
    rounds = ROUNDS_OF_STEPS if axis == "steps" else 1
    first = _send(task(rounds, ASK) if axis == "approvals" else task(rounds))
    drained(1)
    if axis == "watching":
        return first.conversation
    if axis == "turns":
        for _ in range(size - 1):
            _turn(1, first.conversation)
        return first.conversation
    copy(first.conversation, size // first.steps.count() if axis == "steps" else size - 1)
    return None


def _exponent(sizes: list[int], costs: list[float]) -> float:
    if min(costs[0], costs[-1]) <= 0:
        return 0.0
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])


def _in_own_process(options: argparse.Namespace, database: str, axis: str, size: int) -> dict[str, float]:
    print(f"{database}: {size} {axis} ...", file=sys.stderr)
    command = ["--axis", axis, "--size", str(size), "--times", str(options.times)]
    return dict(support.in_own_process("bench.flat", database, command))


def main() -> None:
    """Measure each size in a process of its own, and print a table for each database."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.flat", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--axis", choices=AXES, help="vary only this")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], help="of that axis")
    parser.add_argument("--times", type=int, default=5, help="how often each turn is run")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(options)))
        return
    databases = ("sqlite", "postgres") if options.database == "both" else (options.database,)
    axes = {options.axis: options.sizes or AXES[options.axis]} if options.axis else AXES
    for database in databases:
        rows = []
        for axis, sizes in axes.items():
            found = [_in_own_process(options, database, axis, size) for size in sizes]
            for name in found[0]:
                costs = [each[name] for each in found]
                cells = (f"{size:,}: {cost:.1f}" for size, cost in zip(sizes, costs, strict=True))
                rows.append([axis, name, *cells, _exponent(sizes, costs)])
        print(database)
        print(support.table(["against", "of a", *("" for _ in sizes), "exponent"], rows))


if __name__ == "__main__":
    main()
