"""Request bodies: how much of one is taken, from whom, and for how long the site waits for it.

An ordinary body, of at most ORDINARY_MOST, is taken from anybody. A larger one, where an address takes any, is read
only after the person who sends it is known from the headers, and only a few at a time. Whoever is refused gets one
sentence while the rest of the body is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from io import BytesIO
from typing import IO, Any, Protocol

from daphne.http_protocol import WebRequest
from twisted.web.http import HTTPChannel

from agentsite import headers
from agentsite.refusals import (
    BUSY,
    NO_LENGTH,
    ORDINARY_MOST,
    OWN_AT_ONCE,
    STRANGER,
    TINY_PIECES,
    TOO_LARGE,
    TOO_SLOW,
    UNKNOWN,
    UPGRADED,
    Refusal,
)

logger = logging.getLogger(__name__)

SMALL = 64 * 1024
"""Bytes of a body for which there is always room: a sign-in or a message is shorter."""
ORDINARY_TOGETHER = 256 * 1024 * 1024
"""Bytes of all ordinary bodies together, beyond SMALL of each: many connections must not fill the disk."""
PERSON_AT_ONCE, SITE_AT_ONCE = 2, 6
"""Larger bodies at a time, of one person and of all people."""
WAITING_PERSON, WAITING_SITE = 4, 12
"""The same of those that may be kept for minutes: they have a room of their own, so that no other waits for them."""
HEAD_SECONDS = 60.0
"""From a connection, or the answer before, to the end of a request's headers. No byte that trickles in adds to it."""
BODY_SECONDS, BODY_RATE = 30.0, 16 * 1024
"""A body has this many seconds, and one more for each BODY_RATE bytes that have arrived."""
PIECES_MOST, PIECE_BYTES = 10_000, 64
"""Pieces, such as chunks, that a body may have, and one more for each PIECE_BYTES: each takes 8 µs (measured)."""
DROP_SECONDS = 10.0
"""How long a refused body is read and dropped. A client that is cut off while it sends never reads the answer."""
BODY = "agentsite.body"
"""The key of a scope under which the body is handed to `reading`."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Limits(Protocol):
    """What an address takes, and who sends it."""

    def most(self, method: bytes, target: bytes) -> int:
        """Return how many bytes a body may have that is sent with this method to this request target."""
        ...

    def waits(self, target: bytes) -> bool:
        """Whether a body for this target may be kept for minutes, because somebody else has to answer."""
        ...

    async def person(self, target: bytes, authorization: str, cookies: str) -> int | None:
        """Return who sends a request with these headers to this target; None for a stranger."""
        ...


class Room:
    """What all connections of a server hold together. Room is given back in any thread.

    There is room for so many larger bodies at a time, of one `person` and of the whole `site`.
    """

    def __init__(self, person: int = PERSON_AT_ONCE, site: int = SITE_AT_ONCE) -> None:
        self._person, self._site = person, site
        self._bytes = 0
        self._larger: Counter[int] = Counter()
        self._lock = threading.Lock()

    def take_bytes(self, count: int) -> bool:
        """Take room for more of an ordinary body, if there is any."""
        with self._lock:
            if self._bytes + count > ORDINARY_TOGETHER:
                return False
            self._bytes += count
            return True

    def take_place(self, person: int) -> Refusal | None:
        """Take one of the places for larger bodies; return why not, if there is none."""
        with self._lock:
            if self._larger[person] >= self._person:
                return OWN_AT_ONCE
            if self._larger.total() >= self._site:
                return BUSY
            self._larger[person] += 1
            return None

    def give_back(self, count: int, person: int | None) -> None:
        """Give back room for this many bytes, and the place of a person who has one."""
        with self._lock:
            self._bytes -= count
            if person is not None:
                self._larger[person] -= 1
                self._larger += Counter()  # without those who have none


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


class Channel(HTTPChannel):
    """A connection with HTTP requests, which ends if a request does not arrive in time."""

    _networkProducer: Any  # noqa: N815 - Twisted's name
    held = False  # nothing is read while it is looked up who sends a request

    def hold(self) -> None:
        """Read nothing from the client until `go_on`."""
        self.held = True
        self._networkProducer.pauseProducing()

    def go_on(self) -> None:
        """Read again, as soon as the client has taken what was sent before."""
        self.held = False
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's names, here and below
        """Handle that the client has taken what was sent to it."""
        super().resumeProducing()  # type: ignore[no-untyped-call]
        if self.held:
            self._networkProducer.pauseProducing()

    def resetTimeout(self) -> None:  # noqa: N802
        """Change nothing: Twisted's time limit would begin again with every byte."""

    def allContentReceived(self) -> None:  # noqa: N802
        """Handle the end of a request."""
        # Twisted keeps it for the next request; it must not be what is left of the body's.
        self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        super().allContentReceived()  # type: ignore[no-untyped-call]

    def timeoutConnection(self) -> None:  # noqa: N802
        """End the connection. Whoever is still sending a body is told why."""
        if self.requests and self.requests[-1].unfinished:
            self.requests[-1].refuse(TOO_SLOW)
        super().timeoutConnection()  # type: ignore[no-untyped-call]

    def _send100Continue(self) -> None:  # noqa: N802
        if self.requests[-1].unfinished and not self.held:
            super()._send100Continue()  # type: ignore[no-untyped-call]


class LimitedRequest(WebRequest):  # type: ignore[misc]
    """A request whose body is limited. The connection is a Channel."""

    def __init__(self, *args: Any, limits: Limits, room: Room, waiting_room: Room, **options: Any) -> None:
        # Twisted would parse a form as a whole, in memory, for nobody.
        super().__init__(*args, parsePOSTFormSubmission=False, **options)
        self._limits, self._room, self._waiting_room = limits, room, waiting_room
        self.content: IO[bytes]
        self.unfinished = False  # its body is being received
        self._most = ORDINARY_MOST
        self._got = self._taken = self._pieces = 0
        self._place: int | None = None  # the person who has a place for a larger body
        self._handed_over = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Handle the end of the headers, with the length that the client gives for the body; None if it gives none."""
        unreadable = headers.refusal(self._header("Content-Type"), self._header("Accept"))
        if length == 0:
            super().gotLength(0)
            if unreadable:
                self.refuse(unreadable)
            return
        # The channel's own attributes: it passes them to a request only after the whole body has arrived.
        most = self._limits.most(self.channel._command, self.channel._path)
        if self._limits.waits(self.channel._path):
            self._room = self._waiting_room
        super().gotLength(length if length is None or length <= most else 0)
        self._most = min(most, ORDINARY_MOST)
        self._too_much = NO_LENGTH if most > ORDINARY_MOST else TOO_LARGE
        self.unfinished, self._since = True, time.monotonic()
        self.channel.setTimeout(BODY_SECONDS)
        if "websocket" in self._header("Upgrade").lower():  # Daphne would never say that the body is done with
            self.refuse(UPGRADED)
        elif unreadable:
            self.refuse(unreadable)
        elif length is not None and length > most:
            self.refuse(TOO_LARGE)
        elif length is not None and length > ORDINARY_MOST:
            self.channel.hold()
            self._asking = asyncio.ensure_future(self._ask(most))

    async def _ask(self, most: int) -> None:
        """Find out who sends a larger body, and take it or refuse it."""
        person, refusal = None, STRANGER
        try:
            headers = self._header("Authorization"), self._header("Cookie")
            person = await self._limits.person(self.channel._path, *headers)
        except Exception:
            logger.warning("cannot look up who sends a large request", exc_info=True)
            refusal = UNKNOWN
        if not self.unfinished:
            return  # the connection has ended meanwhile
        self.channel.go_on()
        if person is None:
            self.refuse(refusal)
        elif full := self._room.take_place(person):
            self.refuse(full)
        else:
            self._place, self._most = person, most
            if self._header("Expect").lower() == "100-continue":
                self.channel._send100Continue()

    def _header(self, name: str) -> str:
        # As Django reads them: of a header that is sent twice, both.
        values = self.requestHeaders.getRawHeaders(name.encode()) or []
        return (b"; " if name == "Cookie" else b",").join(values).decode("latin-1")

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Handle a piece of the body."""
        if not self.unfinished:
            return  # refused
        self._got += len(data)
        self._pieces += 1
        if self._got > self._most:
            self.refuse(self._too_much)
        elif self._pieces > PIECES_MOST + self._got // PIECE_BYTES:
            self.refuse(TINY_PIECES)
            self.channel.hold()  # to drop the rest would take the time that this saves
        elif not self._has_room():
            self.refuse(BUSY)
        else:
            super().handleContentChunk(data)
            ends = self._since + BODY_SECONDS + self._got / BODY_RATE
            self.channel.setTimeout(max(0.001, ends - time.monotonic()))

    def _has_room(self) -> bool:
        more = self._got - SMALL - self._taken
        if self._place is not None or more <= 0:
            return True
        if not self._room.take_bytes(more):
            return False
        self._taken += more
        return True

    def refuse(self, refusal: Refusal) -> None:
        """Answer the request, and drop what has arrived of its body and what still arrives."""
        channel = self.channel
        channel.transport.write(refusal.response(channel._command, channel._path))
        channel.setTimeout(DROP_SECONDS)
        self._end()
        self.content.close()

    def requestReceived(self, *args: Any) -> None:  # noqa: N802
        """Handle the end of the body."""
        if self.content.closed:  # refused
            self.channel.loseConnection()
        else:
            self.unfinished = False
            super().requestReceived(*args)

    def process(self) -> Any:
        """Handle the complete request."""
        # Daphne takes it from anybody for the prefix of the site's own links.
        self.requestHeaders.removeHeader("Daphne-Root-Path")
        return super().process()

    def hand_over(self) -> Body:
        """Return the body, to be closed by its reader. Daphne, which would put all of it into memory, finds nothing."""
        body = Body(self.content, self._give_back)
        self.content, self._handed_over = BytesIO(), True
        return body

    def finish(self) -> None:
        """Handle the end of the answer."""
        self._end()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        """Handle the end of the connection."""
        self._end()
        super().connectionLost(reason)

    def _end(self) -> None:
        """Give back what the request holds, unless somebody reads its body."""
        self.unfinished = False
        if not self._handed_over:
            self._give_back()

    def _give_back(self) -> None:
        taken, self._taken = self._taken, 0
        place, self._place = self._place, None
        self._room.give_back(taken, place)


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
