"""What a turn costs: SQL statements by sender, functions by time, and CPU, of turns alone and of many at once.

The turns run in a drain in this process, against the scripted model of `bench.peers` in another. They are run three
times: as they are, for the CPU time of the loop's and the database's thread; with their statements noted; and with the
functions of both threads profiled, which makes everything slower. Turns `alone` are run one after the other, those `at
once` with a model that takes its time. Sending the messages is measured beside that: the web process does it.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench import statements, support
from bench.drained import DATABASE_THREAD, drained
from bench.peers.task import task
from bench.processes import await_answer, free_port, started

CASES = ("alone", "at once")
SETTINGS = {"AGENTSITE_MODEL_API": "chat", "AGENTSITE_MAX_ROUNDS": "1000", "AGENTSITE_PROMPTS_AT_ONCE": "0"}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was found on one database, as text."""
    port = free_port()
    with started("-m", "bench.peers.model", f"--port={port}"):
        await_answer(f"http://127.0.0.1:{port}/")
        with support.site(options.database, f"http://127.0.0.1:{port}/v1", **SETTINGS):
            _drained(task(1), 1)
            return {"text": "\n\n".join(_case(case, options) for case in CASES)}


def _case(case: str, options: argparse.Namespace) -> str:
    """Return the three looks at one case."""
    from django.conf import settings

    alone = case == "alone"
    settings.AGENTSITE_HOLD_PROMPTS = 1 if alone else 256
    turns = options.alone if alone else options.turns
    said = task(options.rounds, delay_ms=0 if alone else options.latency)
    head = f"=== {options.database}, {turns} turns of {options.rounds} rounds, {case}"
    parts = [head, _cpu(said, turns)]
    with statements.recorded(DATABASE_THREAD) as sent:
        _drained(said, turns)
    parts += [statements.totals(sent, turns), statements.listing(sent, turns, options.top)]
    if sys.version_info < (3, 12):  # later, a profiler is not of one thread
        parts += [f"--- {name}\n{text}" for name, text in _functions(said, turns, options.top)]
    return "\n\n".join(parts)


def _cpu(said: str, turns: int) -> str:
    took = _drained(said, turns)
    each = {name: seconds * 1000 / turns for name, seconds in took.items()}
    return (
        f"{each['wall']:.1f} ms a turn; CPU {each['cpu']:.1f} ms a turn: {each['loop']:.1f} the loop's thread, "
        f"{each['database']:.1f} the database's. Sending it: {each['sending']:.1f} ms CPU"
    )


def _functions(said: str, turns: int, top: int) -> Iterator[tuple[str, str]]:
    loop, database = cProfile.Profile(), cProfile.Profile()
    _drained(said, turns, loop, database)
    for name, profile in (("the loop's thread", loop), ("the database's thread", database)):
        for order in ("cumulative", "tottime"):
            out = io.StringIO()
            stats = pstats.Stats(profile, stream=out).strip_dirs().sort_stats(order)
            stats.print_stats(top)
            text = out.getvalue()
            yield f"{name}, by {order} time of {turns} turns", text[text.index("   ncalls") :].rstrip()


def _drained(
    said: str, turns: int, loop: cProfile.Profile | None = None, database: cProfile.Profile | None = None
) -> dict[str, float]:
    """Send these messages and run their turns, profiled. Returns the seconds of all of them."""
    from conversations.prompts.start import begin_conversation

    owner, cpu = support.person(), time.process_time()
    for _ in range(turns):
        begin_conversation(owner, said)
    sending = time.process_time() - cpu
    return drained(turns, loop, database) | {"sending": sending}


def main() -> None:
    """Measure on both databases and print what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", type=int, default=40, help="how many turns one after the other")
    parser.add_argument("--turns", type=int, default=200, help="how many at once")
    parser.add_argument("--latency", type=int, default=200, help="milliseconds of the model, for those at once")
    parser.add_argument("--top", type=int, default=30, help="how many statements and functions are listed")
    for found in support.on_databases(parser, "bench.profile", measure):
        print(found["text"])


if __name__ == "__main__":
    main()
