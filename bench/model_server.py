"""A model server that costs next to nothing: `python -m bench.model_server --port N`.

It answers every POST with the same chat completion, or with the same stream if the body says `"stream": true`, and
every GET with `{}`. It speaks HTTP/1.1 on a bare socket, with keep-alive, for bodies with a `Content-Length`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
from typing import Any

from agents.plugins.shell.tree import die_with_parent

EVENTS = 40
"""Of a stream, with the finish reason, the usage and `[DONE]`."""
ANSWER_BYTES = 1000
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAMS = re.compile(rb'"stream": *true')
_COMMON: dict[str, Any] = {"id": "chatcmpl-bench", "created": 1_700_000_000, "model": "bench"}
_USAGE = {"prompt_tokens": 60, "completion_tokens": EVENTS - 3, "total_tokens": 57 + EVENTS}


def completion() -> bytes:
    """Return the JSON of the whole answer, of ANSWER_BYTES."""
    empty = json.dumps(_completion(""))
    return json.dumps(_completion("x" * (ANSWER_BYTES - len(empty)))).encode()


def events() -> list[bytes]:
    """Return the server-sent events of the streamed answer."""
    deltas = [_chunk({"content": f"word {number} "}) for number in range(EVENTS - 3)]
    usage = {**_COMMON, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}
    parts = [json.dumps(each) for each in (*deltas, _chunk({}, "stop"), usage)]
    return [f"data: {part}\n\n".encode() for part in (*parts, "[DONE]")]


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {**_COMMON, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _chunk(delta: dict[str, str], finished: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finished}
    return {**_COMMON, "object": "chat.completion.chunk", "choices": [choice], "usage": None}


def _whole(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


_NOTHING, _COMPLETION = _whole(b"{}"), _whole(completion())
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_CHUNKS = [b"%x\r\n%s\r\n" % (len(event), event) for event in events()]
_END = b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection. `pause_seconds` lie between two events of a stream; 0: each is a write of its own."""

    def __init__(self, pause_seconds: float) -> None:
        self._pause = pause_seconds
        self._received = bytearray()
        self._stream: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        """Stop streaming."""
        if self._stream:
            self._stream.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer the request once all of it is there."""
        self._received += data
        head = self._received.find(b"\r\n\r\n") + 4
        if head < 4:
            return
        length = _LENGTH.search(self._received, 0, head)
        if len(self._received) < head + int(length[1] if length else 0):
            return
        if not self._received.startswith(b"POST"):
            self._transport.write(_NOTHING)
        elif _STREAMS.search(self._received, head):
            self._stream = asyncio.create_task(self._write_events())
        else:
            self._transport.write(_COMPLETION)
        self._received.clear()

    async def _write_events(self) -> None:
        self._transport.write(_STREAM_HEAD)
        for chunk in _CHUNKS:
            self._transport.write(chunk)
            await asyncio.sleep(self._pause)
        self._transport.write(_END)


async def _serve(port: int, pause_seconds: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Connection(pause_seconds), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Serve until SIGTERM, or until the parent process ends."""
    die_with_parent(signal.SIGTERM)
    parser = argparse.ArgumentParser(prog="python -m bench.model_server", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True, help="the port on 127.0.0.1")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two events of a stream")
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.pause))


if __name__ == "__main__":
    main()
