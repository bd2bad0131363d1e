"""The model of all contenders: Chat Completions over HTTP, whole or streamed, for next to no CPU time.

What the user says last tells it what to do, see `bench.peers.task`. It looks at bytes and parses nothing: a request of
200 rounds costs it 0.1 ms. All parts of a stream come in one write.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
from typing import Any

from bench.model_server import STREAM_END, STREAM_HEAD, STREAMS, Connection, http_chunk, serve, whole
from bench.peers.task import SAID_BYTES

PIECE = 20
"""Characters of the arguments in one event of a stream."""

_TASK = re.compile(rb"bench: (\d+) rounds of (\w+) after (\d+) ms")
_RESULT = re.compile(rb'"role": ?"tool"')
_numbers = itertools.count(1)
_COMMON: dict[str, Any] = {"created": 1_700_000_000, "model": "bench"}
_USAGE = {"prompt_tokens": 60, "completion_tokens": 80, "total_tokens": 140}


def completion(number: int, tool: str | None) -> bytes:
    """Return the JSON of a whole answer: a call of this tool, or a text. `number` makes its ids unique."""
    message: dict[str, Any] = {"role": "assistant", "content": "Again." if tool else "Enough."}
    if tool:
        message["tool_calls"] = [_call(number, tool, _arguments())]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
    answer = {"id": f"chatcmpl-{number}", "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    return json.dumps(_COMMON | answer).encode()


def events(number: int, tool: str | None) -> list[bytes]:
    """Return the server-sent events of the same answer."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "Again." if tool else "Enough."}]
    if tool:
        said = _arguments()
        deltas.append({"tool_calls": [{"index": 0, **_call(number, tool, "")}]})
        for start in range(0, len(said), PIECE):
            piece = {"index": 0, "function": {"arguments": said[start : start + PIECE]}}
            deltas.append({"tool_calls": [piece]})
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", **_COMMON}
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"})
    parts = [head | {"choices": [choice]} for choice in choices] + [head | {"choices": [], "usage": _USAGE}]
    return [f"data: {part}\n\n".encode() for part in (*map(json.dumps, parts), "[DONE]")]


def _arguments() -> str:
    return json.dumps({"text": "x" * SAID_BYTES})


def _call(number: int, tool: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}


class Scripted(Connection):
    """One connection to the model."""

    def post(self, body: bytes) -> None:
        """Answer a request, once the delay that its user asks for is over."""
        *_, asked = _TASK.finditer(body)
        done = len(_RESULT.findall(body, asked.end()))
        tool = asked[2].decode() if done < int(asked[1]) else None
        asyncio.get_running_loop().call_later(
            int(asked[3]) / 1000, self._answer, tool, STREAMS.search(body) is not None
        )

    def _answer(self, tool: str | None, streams: bool) -> None:
        if self.transport.is_closing():
            return
        number = next(_numbers)
        if streams:
            self.transport.write(STREAM_HEAD + b"".join(map(http_chunk, events(number, tool))) + STREAM_END)
        else:
            self.transport.write(whole(completion(number, tool)))


def main() -> None:
    """Serve the contenders."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.model", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="the port on 127.0.0.1")
    serve(parser.parse_args().port, Scripted)


if __name__ == "__main__":
    main()
