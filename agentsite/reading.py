"""Reading the bodies of requests: an application reads the server's own file, which holds its room until then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

SMALL = 64 * 1024
"""Bytes of a body for which there is always room: a sign-in or a message is shorter."""
BODY = "agentsite.body"
"""The key of a scope under which the body is handed to `reading`."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Body:
    """A body that has arrived: its file, and what that takes of the room until it is closed, by whoever reads it."""

    def __init__(self, file: IO[bytes], give_back: Callable[[], None]) -> None:
        self._file, self._give_back = file, give_back

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        """Close the file, which is nowhere else on the disk."""
        self._file.close()
        self._give_back()


def reading(application: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Return the ASGI application with a `receive` that reads the body's file.

    The body is closed when the answer begins: a stream may go on for hours.
    """

    async def run(scope: Message, receive: Receive, send: Callable[[Message], Awaitable[None]]) -> None:
        body: Body | None = scope.pop(BODY, None)
        if body is None:
            await application(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            body.close()
            await send(message)

        try:
            await application(scope, Reader(body, receive), answer)
        finally:
            body.close()

    return run


class Reader:
    """The `receive` of one request: its body in pieces, then what Daphne reports."""

    def __init__(self, body: Body, receive: Receive) -> None:
        self._body, self._receive = body, receive
        self._begun = self._ended = False

    async def __call__(self) -> Message:
        """Return the next message."""
        if self._ended:
            return await self._receive()
        await self._begin()
        await asyncio.sleep(0)  # other connections go on meanwhile
        piece = self._body.read(SMALL)
        self._ended = len(piece) < SMALL
        return {"type": "http.request", "body": piece, "more_body": not self._ended}

    async def whole(self) -> Body:
        """Return the body, in place of its pieces."""
        await self._begin()
        self._ended = True
        return self._body

    async def _begin(self) -> None:
        if not self._begun:
            await self._receive()  # the empty body that Daphne found
            self._begun = True
