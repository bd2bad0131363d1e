"""The contender that people write first: a loop around the `openai` SDK, which keeps nothing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from openai import AsyncOpenAI

from bench.peers.line import Figures, all_at_once, serve, timed
from bench.peers.task import ECHO_TOOL, SYSTEM, task


class Sdk:
    """The loop of the SDK's own documentation: the answer is appended to the list of messages as it came."""

    def __init__(self, base_url: str) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key="bench", max_retries=0)

    async def turn(self, rounds: int) -> Figures:
        """Run one turn."""
        return await timed(lambda: self._turn(task(rounds)))

    async def many(self, turns: int, rounds: int, delay_ms: int) -> Figures:
        """Run so many turns at once."""
        return await all_at_once(lambda: self._turn(task(rounds, delay_ms=delay_ms)), turns)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _turn(self, said: str) -> None:
        messages: list[Any] = [SYSTEM, {"role": "user", "content": said}]
        while True:
            answer = await self._client.chat.completions.create(model="bench", messages=messages, tools=[ECHO_TOOL])
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                assert call.type == "function"
                result = json.loads(call.function.arguments)["text"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    """Do what the run asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    serve(Sdk(parser.parse_args().base_url))


if __name__ == "__main__":
    main()
