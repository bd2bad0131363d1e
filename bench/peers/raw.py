"""The least that a round can cost: a post with aiohttp of bytes that only grow, and the answer read as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

import aiohttp

from bench.peers.line import Figures, all_at_once, serve, timed
from bench.peers.task import ECHO_TOOL, SYSTEM, task

HEAD = json.dumps({"model": "bench", "tools": [ECHO_TOOL]}).encode()[:-1] + b', "messages": ['
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer bench"}


class Raw:
    """A loop that serialises each message once."""

    def __init__(self, base_url: str) -> None:
        self._url = f"{base_url}/chat/completions"
        self._session: aiohttp.ClientSession | None = None

    async def turn(self, rounds: int) -> Figures:
        """Run one turn."""
        return await timed(lambda: self._turn(task(rounds)))

    async def many(self, turns: int, rounds: int, delay_ms: int) -> Figures:
        """Run so many turns at once."""
        return await all_at_once(lambda: self._turn(task(rounds, delay_ms=delay_ms)), turns)

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()

    async def _turn(self, said: str) -> None:
        self._session = self._session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=HEADERS)
        body = bytearray(HEAD + _bytes(SYSTEM, {"role": "user", "content": said}))
        while True:
            async with self._session.post(self._url, data=bytes(body) + b"]}") as answer:
                message = json.loads(await answer.read())["choices"][0]["message"]
            calls = message.get("tool_calls", ())
            if not calls:
                return
            results = [{"role": "tool", "tool_call_id": call["id"], "content": _echo(call)} for call in calls]
            body += b", " + _bytes(message, *results)


def _bytes(*messages: dict[str, Any]) -> bytes:
    return json.dumps(messages).encode()[1:-1]


def _echo(call: dict[str, Any]) -> str:
    return str(json.loads(call["function"]["arguments"])["text"])


def main() -> None:
    """Do what the run asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    serve(Raw(parser.parse_args().base_url))


if __name__ == "__main__":
    main()
