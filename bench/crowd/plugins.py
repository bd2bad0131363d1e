"""`BENCH_PLUGINS` plugins, each of which keeps a state and adds a line to every round."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel

from agents import Plugin
from agents.engine.tools.plugin import Round


class Rounds(BaseModel):
    """What each of them keeps."""

    prepared: int = 0


def _made(number: int) -> Any:
    class Counting(Plugin[Rounds]):
        name = f"crowd{number}"

        async def prepare(self, round: Round) -> None:
            round.context.append(f"This is what the plugin no. {number} says.")
            if round.number == 1:
                round.state(self).prepared += 1

    return Counting


vars().update({f"Plugin{number}": _made(number) for number in range(int(os.environ.get("BENCH_PLUGINS", "0")))})
