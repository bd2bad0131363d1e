"""One durable round (model call to model call, one echo tool, all recorded) beside a bare SDK loop that keeps nothing.

Both talk to the same loopback server, in turn within one process: while the durable turn's echo runs, the bare loop
does its round. So a slow moment of the machine hits both, and their ratio holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from bench import support, tools

MARKS = (10, 50, 200, 500)
"""The rounds at which a turn is measured."""
AROUND = 5
"""A figure is the median of this many rounds before and after its mark."""


@dataclass
class RoundTimes:
    """The wall and CPU seconds of each round of one loop."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def start(self) -> None:
        """Begin a round."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """End the round."""
        self.wall.append(time.perf_counter() - self._wall)
        self.cpu.append(time.process_time() - self._cpu)

    def at(self, mark: int) -> tuple[float, float]:
        """Return the median wall and CPU milliseconds around this round."""
        near = slice(max(0, mark - AROUND - 1), mark + AROUND)
        return statistics.median(self.wall[near]) * 1000, statistics.median(self.cpu[near]) * 1000


class BareLoop:
    """A loop that records nothing: the SDK's cheapest call, without streaming, and a growing list."""

    def __init__(self, base_url: str, tool_bytes: int) -> None:
        from openai import AsyncOpenAI

        self.client = AsyncOpenAI(base_url=base_url, api_key="bench", max_retries=0)
        self.input: list[Any] = [{"role": "user", "content": "go"}]
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        self.tools: list[Any] = [{"type": "function", "name": "bench_echo", "description": "Say it again.",
                                  "parameters": schema, "strict": False}]  # fmt: skip
        self.echo = "x" * tool_bytes

    async def round(self) -> None:
        """Ask the model, and append its answer and the call's result to the list."""
        answer = await self.client.responses.create(
            model="bench", instructions="You are a helpful assistant.", input=self.input, tools=self.tools, store=False
        )
        for item in answer.output:
            self.input.append(item.model_dump(exclude_none=True, exclude={"status"}))
            if item.type == "function_call":
                self.input.append({"type": "function_call_output", "call_id": item.call_id, "output": self.echo})


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run one turn of this number of rounds. Returns the figures at each mark."""
    reply = {"text": "Again.", "calls": [{"name": "bench_echo", "arguments": {"text": "x" * options.tool_bytes}}]}
    rounds = [reply] * (options.rounds + 1) + [{"text": "Enough."}]
    with support.server(rounds) as started:
        base_url = options.base_url or started
        with support.site(options.database, base_url, AGENTSITE_MAX_ROUNDS="100000", AGENTSITE_TURN_SECONDS="86400"):
            return asyncio.run(_measured(options, base_url))


async def _measured(options: argparse.Namespace, base_url: str) -> dict[str, Any]:
    from asgiref.sync import sync_to_async

    durable, bare, loop = RoundTimes(), RoundTimes(), BareLoop(base_url, options.tool_bytes)

    async def between() -> None:
        durable.stop()
        if len(durable.wall) <= options.rounds:
            bare.start()
            await loop.round()
            bare.stop()
        durable.start()

    tools.between_rounds.append(between)
    durable.start()
    prompt = await sync_to_async(_begun)()
    await support.drained()
    await loop.client.close()
    return await sync_to_async(_figures)(prompt, durable, bare, options)


def _begun() -> int:
    from conversations.prompts.start import start_conversation, start_prompt

    owner = support.person()
    return start_prompt(start_conversation(owner), owner, "go").pk


def _figures(prompt: int, durable: RoundTimes, bare: RoundTimes, options: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for mark in (m for m in MARKS if m <= options.rounds):
        (wall, cpu), (bare_wall, bare_cpu) = durable.at(mark), bare.at(mark)
        stored, said = stored_bytes(prompt, mark)
        rows.append(
            {"round": mark, "wall_ms": wall, "cpu_ms": cpu, "bare_wall_ms": bare_wall, "bare_cpu_ms": bare_cpu,
             "wall_ratio": wall / bare_wall, "stored_bytes": stored, "said_bytes": said}
        )  # fmt: skip
    return {"database": options.database, "rounds": options.rounds, "tool_bytes": options.tool_bytes, "rows": rows}


def stored_bytes(prompt: int, number: int) -> tuple[int, int]:
    """Return the bytes of one round's steps and outputs, all columns, and of its texts, inputs and results."""
    from django.db.models import Q

    from conversations.models import Output, Step

    of_round = Q(prompt=prompt) & (Q(path=str(number)) | Q(path__startswith=f"{number}/"))
    rows = [*Step.objects.filter(of_round).values_list(), *Output.objects.filter(of_round).values_list()]
    said = 0
    for output in Output.objects.filter(of_round):
        content = output.content
        result = content.get("result", {}).get("output", "")
        said += len(content.get("text", "")) + len(json.dumps(content.get("input", ""))) + len(str(result))
    return sum(len(str(value)) for row in rows for value in row if value is not None), said


def main() -> None:
    """Measure on both databases, each in a process of its own, and print the table and the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--tool-bytes", type=int, default=200)
    parser.add_argument("--base-url", default="", help="use this model server instead of the scripted one")
    found = support.on_databases(parser, "bench.round", measure)
    names = ("round", "wall_ms", "cpu_ms", "bare_wall_ms", "bare_cpu_ms", "wall_ratio", "stored_bytes", "said_bytes")
    rows = [[each["database"], *(row[name] for name in names)] for each in found for row in each["rows"]]
    print(support.table(("database", *names), rows))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
