"""Resume time: how long a long turn takes from its claim to its next model call, after its worker was stopped."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

from bench import support, tools


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the milliseconds from the claim to the next request, over several resumes of one turn."""
    reply = {"text": "Again.", "calls": [{"name": "bench_echo", "arguments": {"text": "x" * 200}}]}
    with support.server([reply] * (options.rounds + 100)) as base_url, support.site(
        options.database, base_url, AGENTSITE_MAX_ROUNDS="100000", AGENTSITE_TURN_SECONDS="86400"
    ):  # fmt: skip
        from conversations.prompts.start import start_conversation, start_prompt

        owner = support.person()
        start_prompt(start_conversation(owner), owner, "go")
        asyncio.run(_stopped_after(support.new_drain(), options.rounds))
        times = [asyncio.run(_resumed(support.new_drain())) for _ in range(options.times)]
        return {"database": options.database, "rounds": options.rounds, "resumes": options.times,
                "median_ms": statistics.median(times), "worst_ms": max(times)}  # fmt: skip


async def _stopped_after(drain: Any, rounds: int) -> None:
    """Run the turn for this number of rounds, then stop its worker."""
    count = 0

    async def between() -> None:
        nonlocal count
        count += 1
        if count == rounds:
            _stop(drain)

    tools.between_rounds.append(between)
    await drain()


def _stop(drain: Any) -> None:
    drain.stop()
    for runner in drain.runners.values():
        runner.drain()


async def _resumed(drain: Any) -> float:
    """Claim the turn and stop it at its next model call. Returns the milliseconds between the two."""
    from agents import registry
    from conversations.worker import drain as drains

    asked: list[float] = []
    begun: list[float] = []
    provider, ask, claim = registry.provider(), registry.provider().ask, drains.claim

    def noting_ask(request: Any) -> Any:
        asked.append(time.perf_counter())
        _stop(drain)
        return ask(request)

    def noting_claim(*args: Any) -> Any:
        begun.append(time.perf_counter())
        return claim(*args)

    provider.ask, drains.claim = noting_ask, noting_claim  # type: ignore[method-assign]
    try:
        await drain()
    finally:
        provider.ask, drains.claim = ask, claim  # type: ignore[method-assign]
    return (asked[0] - begun[0]) * 1000


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--times", type=int, default=5)
    found = support.on_databases(parser, "bench.resume", measure)
    print(support.table(list(found[0]), [list(each.values()) for each in found]))


if __name__ == "__main__":
    main()
