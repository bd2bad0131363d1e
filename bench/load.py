"""A load of HTTP requests that itself costs little: each client is a bare socket that asks, reads all, and asks again.

It reads what a chat completion may come as: a body with a `Content-Length`, or one in chunks.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n0\r\n\r\n"
"""How a body in chunks ends. The answers of `bench.model_server` have it nowhere else."""


@dataclass(frozen=True)
class Target:
    """Where requests go: a name for the table, the port on 127.0.0.1, the key, and who passes them on (0: nobody)."""

    name: str
    port: int
    key: str
    pid: int = 0

    def request(self, *, stream: bool) -> bytes:
        """Return the bytes of a request for a chat completion."""
        asked = {
            "model": "bench",
            "messages": [
                {
                    "role": "system",
                    "content": "You answer briefly, and say so if you do not know. " * 4,
                },
                {"role": "user", "content": "What should I see in this town, if I have one afternoon? " * 2},
            ],
            "temperature": 0.2,
            **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
        }
        body = json.dumps(asked).encode()
        lines = [
            "POST /v1/chat/completions HTTP/1.1",
            f"host: 127.0.0.1:{self.port}",
            f"authorization: Bearer {self.key}",
            "content-type: application/json",
            "accept: application/json",
            f"content-length: {len(body)}",
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Timed:
    """The seconds of each request until its first byte of a body, and until its last; and how long all took."""

    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    seconds: float = 0


class Client(asyncio.Protocol):
    """One connection, which is used again for each request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._begin(asyncio.get_running_loop().create_future())

    def _begin(self, answer: asyncio.Future[float]) -> None:
        self._answer = answer
        self._received = bytearray()
        self._head, self._size, self._first = 0, 0, 0.0

    def connection_lost(self, _: Exception | None) -> None:
        """Say so to whoever waits for an answer."""
        if not self._answer.done():
            self._answer.set_exception(ConnectionError(f"The connection ended after {bytes(self._received)!r}."))

    def data_received(self, data: bytes) -> None:
        """Take the times of the first byte of the body and of the last."""
        received = self._received
        received += data
        if not self._head:
            self._head = received.find(b"\r\n\r\n") + 4
            if self._head < 4:
                self._head = 0
                return
            length = _LENGTH.search(received, 0, self._head)
            self._size = self._head + int(length[1]) if length else 0
        if not self._first and len(received) > self._head:
            self._first = time.perf_counter()
        if len(received) >= self._size if self._size else received.endswith(_END):
            self._answer.set_result(time.perf_counter())

    async def ask(self, request: bytes) -> tuple[float, float]:
        """Return the seconds until the first byte of the body, and until its last.

        Raises ConnectionError if the connection ends before that, and RuntimeError for another status than 200.
        """
        self._begin(asyncio.get_running_loop().create_future())
        began = time.perf_counter()
        self._transport.write(request)
        ended = await self._answer
        if not self._received.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._received[:2000].decode(errors="replace"))
        return self._first - began, ended - began

    @property
    def body(self) -> bytes:
        """The body of the last answer, without what marks its chunks."""
        left = bytes(self._received[self._head :])
        if self._size:
            return left
        whole = b""
        while True:
            size, _, left = left.partition(b"\r\n")
            if not (length := int(size, 16)):
                return whole
            whole, left = whole + left[:length], left[length + 2 :]

    def close(self) -> None:
        """End the connection."""
        self._answer.cancel()
        self._transport.abort()


async def connected(target: Target) -> Client:
    """Return a new client of this target."""
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", target.port)
    return client


async def load(target: Target, clients: int, seconds: float, *, stream: bool) -> Timed:
    """Return the times of all requests of so many clients, each of which asks again at once, for so long."""
    connections = [await connected(target) for _ in range(clients)]
    timed, request = Timed(), target.request(stream=stream)
    began = time.perf_counter()

    async def keep_asking(client: Client) -> None:
        while time.perf_counter() - began < seconds:
            first, whole = await client.ask(request)
            timed.first.append(first)
            timed.whole.append(whole)

    try:
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(keep_asking(connection))
        timed.seconds = time.perf_counter() - began
    finally:
        for connection in connections:
            connection.close()
    return timed
