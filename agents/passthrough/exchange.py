"""One exchange: a request on its way to the model server, and its answer on the way back."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from aiohttp import ClientError, ClientResponse

from agents.passthrough.counting import EVENT_STREAM, READABLE, Counter
from agents.passthrough.errors import Refused
from agents.passthrough.headers import Header, repeats, to_client, value_of

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CUT = "http.response.cut"
"""A message that ends a connection because the answer is not whole: an extension of ASGI, which our server has."""
ERROR_MOST = 1024 * 1024
"""Bytes of an error that are looked through for the site's key. Errors are short; the rest of a longer one is cut."""
UNREADABLE = "The model server answered with an error that cannot be read. Tell whoever runs this site."
_ESCAPED = re.compile(rb"\\u00([0-7][0-9a-fA-F])")
"""A letter, as JSON may write it."""


class Left(Exception):
    """The client has gone."""


class Exchange:
    """What happens for one client until they have their answer, leave or are sent away."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._task: asyncio.Task[Any] | None = None
        self._reason: Exception | None = None
        self.begun = False
        """Whether the client has the beginning of an answer."""

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, which is cancelled when the client leaves. Raises Left then, and what `end` was given."""
        self._task = asyncio.current_task()
        leaving = asyncio.ensure_future(self._receive())
        leaving.add_done_callback(self._left)
        try:
            await work
        except asyncio.CancelledError:
            if self._task is None or self._reason is None:
                raise  # the server stops
            self._task.uncancel()
            raise self._reason from None
        finally:
            self._task = None
            leaving.cancel()

    def _left(self, leaving: asyncio.Future[Message]) -> None:
        if not leaving.cancelled():
            self.end(Left())

    def end(self, reason: Exception) -> None:
        """Cancel the work, for this reason."""
        if self._task is not None and self._reason is None:
            self._reason = reason
            self._task.cancel()

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        """Begin the answer."""
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, piece: bytes, more: bool = True) -> None:
        """Send a piece of the answer. Returns when the client has room for the next."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def whole(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        """Send a whole answer, whose length replaces the one in its headers."""
        kept = [each for each in headers if each[0] != b"content-length"]
        await self.start(status, [*kept, (b"content-length", str(len(body)).encode())])
        await self.write(body, more=False)

    async def refuse(self, refused: Refused) -> None:
        """Answer with an error; in the middle of an answer, which cannot say so, cut it."""
        if self.begun:
            await self.cut()
        else:
            await self.whole(refused.status, refused.headers, refused.body)

    async def cut(self) -> None:
        """End the connection: the client must not take the answer for a whole one."""
        await self._send({"type": CUT})

    async def pass_back(self, answer: ClientResponse, key: str, counter: Counter) -> None:
        """Send the server's answer as it comes, counted. One that breaks off breaks off for the client, too."""
        headers = to_client(answer.raw_headers, key)
        kind = value_of(headers, b"content-type")
        counter.begin(kind, value_of(headers, b"content-encoding"))
        try:
            await self.start(answer.status, headers)
            if kind.startswith(EVENT_STREAM):
                await self.write(b"")  # Daphne sends the head with the first piece, which may come much later
            async for piece in answer.content.iter_any():
                counter.feed(piece)
                await self.write(piece)
        except (ClientError, OSError):
            await self.cut()
        else:
            counter.end()
            await self.write(b"", more=False)

    async def pass_error_back(self, answer: ClientResponse, key: str) -> None:
        """Send the server's error as it came, unless it repeats the site's `key`, or is endless.

        Raises Refused (502) if nobody can tell.
        """
        body, headers = await read_most(answer, ERROR_MOST), to_client(answer.raw_headers, key)
        plain = _inflated(body, value_of(headers, b"content-encoding"))
        shown = plain.replace(key.encode(), b"[key]") if repeats(plain, key) else plain
        if repeats(_ESCAPED.sub(_unescaped, shown), key):
            raise Refused(502, "upstream_broken", UNREADABLE)
        if shown is not plain or len(body) == ERROR_MOST:
            await self.whole(answer.status, [each for each in headers if each[0] != b"content-encoding"], shown)
        else:
            await self.start(answer.status, headers)
            await self.write(body, more=False)


async def read_most(answer: ClientResponse, most: int) -> bytes:
    """Return an answer, or so many bytes of a longer one. Raises Refused (502) if it breaks off."""
    body = bytearray()
    try:
        async for piece in answer.content.iter_any():
            body += piece
            if len(body) >= most:
                break
    except (ClientError, OSError):
        raise Refused(502, "upstream_broken", "The model server's answer broke off. Send this again.") from None
    return bytes(body[:most])


def _inflated(body: bytes, encoding: str) -> bytes:
    """Return the body without its Content-Encoding. Raises Refused (502) if that is not possible."""
    if encoding in ("", "identity"):
        return body
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = inflate.decompress(body, ERROR_MOST) if encoding in READABLE else b""
    except zlib.error:
        plain = b""
    if not inflate.eof or inflate.unused_data:
        raise Refused(502, "upstream_broken", UNREADABLE)
    return plain


def _unescaped(escaped: re.Match[bytes]) -> bytes:
    return bytes([int(escaped[1], 16)])
