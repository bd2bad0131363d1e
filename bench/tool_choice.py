"""What a round spends on its tools, by how many the site has: choosing, adding, and what is sent and stored of them.

No site and no model: rounds are prepared one after the other, with the state that the one before left. `cold` is the
first of a process, which has met none of the tools before; `first` chooses for another conversation. Then nothing
changes (`steady`), tools were found (`find` is the search itself, `added` the round after it), and a turn begins for
which others have to make room (`dropped`). Milliseconds of CPU: medians, but for `cold`, which comes before any turn.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

from pydantic import BaseModel, Field, create_model

from agents.engine.interfaces.services import PlainServices
from agents.engine.ledger import Step
from agents.engine.limits import BYTES_A_TOKEN, Limits
from agents.engine.tools.category import Category
from agents.engine.tools.plugin import Round
from agents.engine.tools.tool import Risk, Tool, ToolCall, by_category, tool
from agents.engine.view import View
from agents.plugins.tools.choice import FIND, ToolChoice
from agents.plugins.tools.finding import Words
from agents.plugins.tools.plugin import Tools
from agents.plugins.tools.tools import find
from bench import support

WORDS = [
    *("orders", "invoices", "customers", "letters", "prices"),
    *("stock", "returns", "deliveries", "suppliers", "reports"),
]
GROUPS = [Category(word, word.title(), order=n) for n, word in enumerate(WORDS)]
TEXT = "Please look which invoices of this customer are late, and write a letter about them."


def made(number: int) -> Tool:
    """Return a tool with an input of its own, as an app would declare it."""
    about, other = WORDS[number % 10], WORDS[number // 10 % 10]
    fields: dict[str, Any] = {
        f"{about}_{each}": (kind, Field(description=f"The {each} of the {about}, as it is on record."))
        for each, kind in (("number", int), ("name", str), ("day", str | None))
    }

    async def run(call: ToolCall[Any]) -> str:
        return ""

    input: Any = create_model(f"Input{number}", __base__=BaseModel, **fields)
    run.__annotations__["call"] = ToolCall[input]
    run.__doc__ = f"Look up {about} of {other} no. {number}.\n\n" + f"It tells what is known of the {about}. " * 8
    return tool(f"{about}.{other}.n{number}", risk=Risk.READ, category=GROUPS[number % 10])(run)


class Conversation:
    """Rounds of one conversation, of which only the choice of tools is kept."""

    def __init__(self, tools: list[Tool], limit: int) -> None:
        self.tools, self.limits, self.kept = tools, Limits(tool_tokens=limit), dict[str, Any]()
        self.round: Round

    async def prepare(self, number: int) -> float:
        """Prepare a round, with all that is sent and stored of its tools; return the milliseconds."""
        began = time.process_time()
        self.round = Round(
            number,
            str(number),
            input=TEXT,
            base="",
            tools=self.tools,
            view=View(states={"tools": self.kept}),
            services=PlainServices(),
            limits=self.limits,
        )
        await self.round.prepare([Tools()])
        _ = self.round.definitions, self.round.snapshot()
        writes: list[Step] = self.round.writes()
        took = time.process_time() - began
        self.kept = writes[-1].payload["value"] if writes else self.kept
        return took * 1000

    async def find(self, words: str) -> float:
        """Find tools by these words, as the model does; return the milliseconds."""
        offered = self.round.tools_by_name
        if FIND not in offered:
            return 0.0
        state = ToolChoice.model_validate(self.kept)
        call = ToolCall(FIND, Words(words=words), 1, PlainServices(), "1/0", state=state)
        began = time.process_time()
        await offered[FIND].function(call)
        took = time.process_time() - began
        self.kept = state.model_dump()
        return took * 1000


async def measure(count: int, limit: int, times: int) -> dict[str, Any]:
    """Return the figures for a site with so many tools."""
    tools = by_category([*(made(number) for number in range(count)), find])
    cold = await Conversation(tools, limit).prepare(1)
    found: dict[str, list[float]] = {}
    for _ in range(times):
        chat = Conversation(tools, limit)
        found.setdefault("first", []).append(await chat.prepare(1))
        found.setdefault("steady", []).append(await chat.prepare(2))
        found.setdefault("find", []).append(await chat.find("late deliveries of suppliers"))
        found.setdefault("added", []).append(await chat.prepare(3))
        for words in WORDS:
            await chat.find(words)
        found.setdefault("dropped", []).append(await chat.prepare(1))
    sent = sum(len(str(each.schema)) + len(each.description) for each in chat.round.definitions) // BYTES_A_TOKEN
    figures = {f"{name} ms": statistics.median(took) for name, took in found.items()}
    return {"tools": count, "offered": len(chat.round.definitions), "tokens": sent, "cold ms": cold, **figures}


def main() -> None:
    """Measure with each number of tools and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="+", default=[20, 100, 500, 2000])
    parser.add_argument("--limit", type=int, default=8000, help="tokens (AGENTSITE_TOOL_TOKENS)")
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    found = [asyncio.run(measure(count, options.limit, options.times)) for count in options.tools]
    print(support.table(["", *(str(each["tools"]) for each in found)], _rows(found)))


def _rows(found: list[dict[str, Any]]) -> list[list[Any]]:
    return [[name, *(each[name] for each in found)] for name in found[0] if name != "tools"]


if __name__ == "__main__":
    main()
