"""Many prompts of one round each, against a slow model, in one worker process: waiting must cost nothing."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from bench import support


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds from the first claim to the last end."""
    reply = {"text": "Here you are.", "delay_seconds": options.latency}
    with support.server([reply]) as base_url, support.site(options.database, base_url):
        from conversations.models import Prompt, State
        from conversations.prompts.start import start_conversation, start_prompt

        owner = support.person()
        for _ in range(options.prompts):
            start_prompt(start_conversation(owner), owner, "go")
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(support.drained())
        cpu = time.process_time() - cpu
        ended = max(p.ended_at.timestamp() for p in Prompt.objects.filter(state=State.COMPLETED))
        begun = min(Prompt.objects.values_list("claimed_at", flat=True))
        return {
            "database": options.database, "prompts": options.prompts, "latency_s": options.latency,
            "completed": Prompt.objects.filter(state=State.COMPLETED).count(), "wall_s": ended - begun, "cpu_s": cpu,
            "with_idle_end_s": time.perf_counter() - wall,
        }  # fmt: skip


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--latency", type=float, default=5.0, help="seconds until the model's first word")
    found = support.on_databases(parser, "bench.prompts", measure)
    print(support.table(list(found[0]), [list(each.values()) for each in found]))


if __name__ == "__main__":
    main()
