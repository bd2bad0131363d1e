"""`BENCH_TOOLS` tools."""

from __future__ import annotations

import os

from bench.tool_choice import made

MADE = [made(number) for number in range(int(os.environ.get("BENCH_TOOLS", "0")))]
for each in MADE:
    each.function.__module__ = __name__
vars().update({f"tool_{number}": each for number, each in enumerate(MADE)})
