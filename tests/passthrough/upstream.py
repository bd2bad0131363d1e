"""A model server that tests control: it sends exactly the bytes that a test says, when it says, and keeps what it got.

It speaks HTTP over bare sockets in a thread of its own, because a web framework would put answers into its own words.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from agents.providers.demo.server import listen
from tests.agentsite.processes import wait_for

JSON = ("content-type", "application/json")
EVENTS = ("content-type", "text/event-stream; charset=utf-8")
LONG = 64 * 1024 * 1024
"""Bytes of a request's head that are read at most: far more than anybody sends."""


class Gate:
    """Something that an answer waits for. It is opened from any thread."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()

    def open(self) -> None:
        """Let on whoever waits."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def wait(self) -> None:
        """Return as soon as it is open."""
        await asyncio.shield(asyncio.wrap_future(self._opened))


Piece = bytes | Gate
"""Part of an answer: bytes, written at once, or what it waits for before the next."""


@dataclass(frozen=True)
class Answer:
    """An answer: the body in pieces, each a chunk of its own, or as one text, with its length in the headers.

    `before`: opened before the first byte. `breaks`: the connection ends after the last piece, the body does not.
    `raw`: instead of all this, exactly these pieces, head and framing included; then the connection ends.
    """

    body: bytes | Iterable[Piece] = b""
    status: int = 200
    headers: Iterable[tuple[str, str]] = (JSON,)
    before: Gate | None = None
    breaks: bool = False
    raw: Iterable[Piece] | None = None

    def pieces(self) -> Iterable[Piece]:
        """Yield what is written to the connection."""
        if self.before:
            yield self.before
        if self.raw is not None:
            yield from self.raw
            return
        whole = isinstance(self.body, bytes)
        framing = f"content-length: {len(self.body)}" if isinstance(self.body, bytes) else "transfer-encoding: chunked"
        lines = [f"HTTP/1.1 {self.status} Scripted", *(f"{name}: {value}" for name, value in self.headers), framing]
        yield "\r\n".join([*lines, "", ""]).encode("latin-1")
        if isinstance(self.body, bytes):
            yield self.body
        else:
            yield from (_chunk(piece) if isinstance(piece, bytes) else piece for piece in self.body)
        if not (whole or self.breaks):
            yield b"0\r\n\r\n"


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


@dataclass
class Received:
    """A request as it arrived: its head, its exact body, and what became of the client."""

    method: str
    target: str
    headers: list[tuple[str, str]]  # names in lower case
    body: bytes
    head: bytes
    at: float = field(default_factory=time.monotonic)
    sent: int = 0  # bytes of the answer that were written
    answered: bool = False
    left_at: float | None = None  # when the client went away before the answer's end

    def header(self, name: str) -> str | None:
        """Return the value of a header, of several the first; None if there is none."""
        return next((value for key, value in self.headers if key == name), None)


Script = Callable[[Received], Answer]


class Upstream:
    """The server in a thread, until `stop()`; also a context manager. `requests` holds what arrived, oldest first."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.script: Script = lambda _: Answer(b"{}")
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._ended = asyncio.Event()
        self._running: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="upstream", daemon=True)
        self._thread.start()

    def answers(self, *answers: Answer) -> None:
        """Give these answers one after another, and the last one again and again. Forgets earlier requests."""
        self.requests = []
        left = list(answers)
        self.script = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def received(self, count: int = 1) -> Received:
        """Wait until so many requests have arrived whole, and return the last of them."""
        wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def stop(self) -> None:
        """End the server with all its connections."""
        self._running.result().call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self, loop), sock=self._socket)
        self._running.set_result(loop)
        await self._ended.wait()
        server.close()


class _Reader(asyncio.StreamReader):
    """A reader that tells at once when the other side has gone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(LONG, loop)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        self.gone.set()
        super().feed_eof()

    def set_exception(self, exc: Any) -> None:
        self.gone.set()
        super().set_exception(exc)


class _Connection(asyncio.StreamReaderProtocol):
    """One connection, which may carry many requests."""

    def __init__(self, upstream: Upstream, loop: asyncio.AbstractEventLoop) -> None:
        self._upstream, self._gone_reader = upstream, _Reader(loop)
        super().__init__(self._gone_reader, self._serve, loop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)  # `drain` waits until the system has taken everything
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer the next request. Returns whether the connection goes on."""
        asked = await _read(reader)
        self._upstream.requests.append(asked)
        answer = self._upstream.script(asked)
        sending = asyncio.ensure_future(_send(answer, asked, writer))
        going = asyncio.ensure_future(self._gone_reader.gone.wait())
        try:
            await asyncio.wait([sending, going], return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                asked.left_at = time.monotonic()
                return False
            sending.result()
        except OSError:
            asked.left_at = time.monotonic()
            raise
        finally:
            sending.cancel()
            going.cancel()
        asked.answered = True
        return not answer.breaks and answer.raw is None


async def _send(answer: Answer, asked: Received, writer: asyncio.StreamWriter) -> None:
    for piece in answer.pieces():
        if isinstance(piece, Gate):
            await piece.wait()
        else:
            writer.write(piece)
            await writer.drain()
            asked.sent += len(piece)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    method, target, _ = first.split(" ")
    named = dict(headers)
    if named.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(named.get("content-length", "0")))
    return Received(method, target, headers, body, head)
