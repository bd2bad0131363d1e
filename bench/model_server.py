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
from collections.abc import Callable
from typing import Any

from agents.plugins.shell.tree import die_with_parent

EVENTS = 40
"""Of a stream, with the finish reason, the usage and `[DONE]`."""
ANSWER_BYTES = 1000
BACKLOG = 1024
"""Connections that may wait to be accepted: several hundred clients connect at once."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
STREAMS = re.compile(rb'"stream": *true')
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


def whole(body: bytes) -> bytes:
    """Return the HTTP response with this JSON."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


_NOTHING, _COMPLETION = whole(b"{}"), whole(completion())
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def http_chunk(data: bytes) -> bytes:
    """Return a chunk of a streamed response's body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


_CHUNKS = [http_chunk(event) for event in events()]
STREAM_END = b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection of a cheap server, which answers each POST with what `post` writes."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer the request once all of it is there."""
        self._received += data
        head = self._received.find(b"\r\n\r\n") + 4
        if head < 4:
            return
        length = _LENGTH.search(self._received, 0, head)
        if len(self._received) < head + int(length[1] if length else 0):
            return
        if self._received.startswith(b"POST"):
            self.post(bytes(self._received[head:]))
        else:
            self.transport.write(_NOTHING)
        self._received.clear()

    def post(self, body: bytes) -> None:
        """Answer a POST with this body."""
        raise NotImplementedError


class SameAnswer(Connection):
    """Always the same answer. `pause_seconds` lie between two events of a stream; 0: each is a write of its own."""

    def __init__(self, pause_seconds: float) -> None:
        super().__init__()
        self._pause = pause_seconds
        self._stream: asyncio.Task[None] | None = None

    def connection_lost(self, _: Exception | None) -> None:
        """Stop streaming."""
        if self._stream:
            self._stream.cancel()

    def post(self, body: bytes) -> None:
        """Answer whole, or as a stream."""
        if STREAMS.search(body):
            self._stream = asyncio.create_task(self._write_events())
        else:
            self.transport.write(_COMPLETION)

    async def _write_events(self) -> None:
        self.transport.write(STREAM_HEAD)
        for chunk in _CHUNKS:
            self.transport.write(chunk)
            await asyncio.sleep(self._pause)
        self.transport.write(STREAM_END)


async def _serve(port: int, connection: Callable[[], Connection]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", port, backlog=BACKLOG)
    await server.serve_forever()


def serve(port: int, connection: Callable[[], Connection]) -> None:
    """Serve on this port of 127.0.0.1 until SIGTERM, or until the parent process ends."""
    die_with_parent(signal.SIGTERM)
    asyncio.run(_serve(port, connection))


def main() -> None:
    """Serve the same answer to everybody."""
    parser = argparse.ArgumentParser(prog="python -m bench.model_server", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True, help="the port on 127.0.0.1")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two events of a stream")
    options = parser.parse_args()
    serve(options.port, lambda: SameAnswer(options.pause))


if __name__ == "__main__":
    main()
