"""Daphne, made patient and given a limit.

What an application sends waits until the client has taken what was sent before, and of a request's body no more is kept
than a site takes. Daphne by itself keeps whatever comes or goes, so that one client takes all there is.
"""

import asyncio
import json
import time
from functools import partial
from typing import Any

from daphne.http_protocol import WebRequest
from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol

FULL_SECONDS = 0.05
"""Between two looks whether a client that had enough to read takes more."""
PATIENCE_SECONDS = 60.0
"""For how long a client may take nothing of what waits for it: a phone in a tunnel comes back within that; what is gone
for longer connects anew, and meanwhile its task, its messages and 64 KiB would be kept, for some clients for ever."""
LONGEST_MESSAGE = 4096
"""Bytes of one message from a client over a socket: pages say next to nothing, and more is refused unread."""


class Socket(WebSocketProtocol):  # type: ignore[misc]
    """A socket whose limit is for what clients send: autobahn would hold what the site sends to it as well."""

    def sendMessage(self, payload: bytes, isBinary: bool = False) -> None:  # noqa: N802, N803 - autobahn's names
        """Send a message of any length, where the socket is open."""
        if self.state == self.STATE_OPEN:
            self.sendPreparedMessage(self.factory.prepareMessage(payload, isBinary, doNotCompress=True))


API = b"/api/"
TOO_LARGE = "This is more than the site takes in one request. Send less, or in parts."


def refusal(path: bytes) -> bytes:
    """The answer to a request whose body is too long: to a program in the shape of all errors under /api/."""
    kind, told = "text/plain", TOO_LARGE
    if path.startswith(API):
        kind, told = "application/json", json.dumps({"error": {"code": "too_large", "message": TOO_LARGE}})
    head = f"HTTP/1.1 413 Content Too Large\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(told)}\r\n\r\n{told}".encode()


class LimitedRequest(WebRequest):  # type: ignore[misc]
    """A request of whose body at most `body_most` bytes are kept; a longer one is answered with 413 at once.

    What comes after that is dropped unread, up to as much again: a client that is cut off while it sends never reads
    the answer.
    """

    def __init__(self, *args: Any, body_most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most, self._got, self._refused = body_most, 0, False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's names
        """The client says how long the body will be; None where it does not."""
        super().gotLength(None if length is None else min(length, self._most))
        if length is not None and length > self._most:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """A piece of the body."""
        self._got += len(data)
        if self._got > self._most and not self._refused:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)
        elif self._got > 2 * self._most:
            self.channel.transport.abortConnection()

    def process(self) -> None:
        """All of it has come."""
        if self._refused:
            self.channel.loseConnection()
        else:
            super().process()

    def _refuse(self) -> None:
        self._refused = True
        # The channel's own: it tells a request its path only when all of the body has come.
        self.channel.transport.write(refusal(self.channel._path))


class PatientServer(Server):  # type: ignore[misc]
    """A server whose applications feel that a client does not read. `body_most`: bytes of one request."""

    def __init__(self, *, body_most: int, **options: Any) -> None:
        self._body_most = body_most
        super().__init__(
            websocket_max_message_size=LONGEST_MESSAGE,
            websocket_max_frame_size=LONGEST_MESSAGE,
            ready_callable=self._ready,
            **options,
        )

    def _ready(self) -> None:
        # The factories were made just now: one with a limit for both directions, the other with none.
        self.ws_factory.protocol = Socket
        build = self.http_factory.buildProtocol

        def limited(address: Any) -> Any:
            protocol = build(address)
            protocol.requestFactory = partial(LimitedRequest, body_most=self._body_most)
            return protocol

        self.http_factory.buildProtocol = limited

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send it, and return when there is room for more or the client is gone."""
        await super().handle_reply(protocol, message)
        taken, since = None, time.monotonic()
        while transport := self._full(protocol):  # Twisted tells only its own producers
            if taken != (taken := (transport.offset, len(transport.dataBuffer))):
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE_SECONDS:
                transport.abortConnection()
            await asyncio.sleep(FULL_SECONDS)

    def _full(self, protocol: Any) -> Any:
        """Twisted's end of a connection that has enough to take; None where there is room, or nobody any more."""
        connection = self.connections.get(protocol)
        if connection is None or "disconnected" in connection:
            return None
        transport = getattr(protocol, "channel", protocol).transport
        # Set by Twisted while more is written than the system takes: 64 KiB beyond the socket's own buffer.
        return transport if getattr(transport, "producerPaused", False) else None
