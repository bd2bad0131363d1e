"""The line protocol of contenders: a line of JSON says what to do, a line of JSON answers.

    {"do": "turn", "rounds": 10}
    {"seconds": 0.15, "cpu": 0.12}

What a contender does are its public methods; `do` names one, the other fields are its arguments. With its input it
ends, after its `close`. This module and the contenders of other libraries import nothing of the site: they run in
another environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

Figures = dict[str, Any]


class Contender(Protocol):
    """One that runs turns. It may do more than this."""

    async def turn(self, rounds: int) -> Figures:
        """Run one turn. Returns its wall and CPU seconds."""
        ...

    async def many(self, turns: int, rounds: int, delay_ms: int) -> Figures:
        """Run so many turns at once, with a model that answers so late. Returns the seconds of all together."""
        ...

    async def close(self) -> None:
        """Close all that is open."""
        ...


def serve(contender: Contender) -> None:
    """Do what is asked on the standard input until it ends. All that is printed meanwhile goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            asked = json.loads(line)
            answers.write(json.dumps(runner.run(getattr(contender, asked.pop("do"))(**asked))) + "\n")
            answers.flush()
        runner.run(contender.close())


async def timed(work: Callable[[], Awaitable[Any]]) -> Figures:
    """Do it. Returns its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


async def all_at_once(work: Callable[[], Awaitable[Any]], times: int) -> Figures:
    """Do it so many times at once. Returns the wall and CPU seconds of all together."""

    async def together() -> None:
        await asyncio.gather(*(work() for _ in range(times)))

    return await timed(together)
