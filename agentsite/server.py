"""The web server: Daphne with backpressure and a limit for request bodies.

An application that sends waits until the client has read what was sent before, and no more of a request's body is kept
than the site accepts. Daphne by itself buffers everything in both directions, so that one client could use all memory.
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
"""Seconds between two checks whether a client with a full buffer reads again."""
PATIENCE_SECONDS = 60.0
"""Seconds after which a client that reads nothing is disconnected. A phone in a tunnel is back by then; one gone for
longer reconnects. Without the limit its task, its messages and 64 KiB would be kept, for some clients forever."""
LONGEST_MESSAGE = 4096
"""Bytes of one WebSocket message from a client: pages send next to nothing. A longer message is refused unread."""


class Socket(WebSocketProtocol):  # type: ignore[misc]
    """A WebSocket whose size limit holds for the client's messages only: autobahn would apply it to the site's, too."""

    def sendMessage(self, payload: bytes, isBinary: bool = False) -> None:  # noqa: N802, N803 - autobahn's names
        """Send a message of any length, if the socket is open."""
        if self.state == self.STATE_OPEN:
            self.sendPreparedMessage(self.factory.prepareMessage(payload, isBinary, doNotCompress=True))


API = b"/api/"
TOO_LARGE = "This request is too large for the site. Send less, or send it in parts."


def refusal(path: bytes) -> bytes:
    """Return the response to a request whose body is too large; under /api/ in the shape of all API errors."""
    kind, body = "text/plain", TOO_LARGE
    if path.startswith(API):
        kind, body = "application/json", json.dumps({"error": {"code": "too_large", "message": TOO_LARGE}})
    head = f"HTTP/1.1 413 Content Too Large\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


class LimitedRequest(WebRequest):  # type: ignore[misc]
    """A request with a body of at most `body_most` bytes; a longer one is answered with 413 at once.

    What arrives after that is dropped, up to the same amount again: a client that is cut off while it sends never reads
    the response.
    """

    def __init__(self, *args: Any, body_most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most, self._got, self._refused = body_most, 0, False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's names
        """Handle the length that the client gives for the body, None if it gives none."""
        super().gotLength(None if length is None else min(length, self._most))
        if length is not None and length > self._most:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Handle a piece of the body."""
        self._got += len(data)
        if self._got > self._most and not self._refused:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)
        elif self._got > 2 * self._most:
            self.channel.transport.abortConnection()

    def process(self) -> None:
        """Handle the complete request."""
        if self._refused:
            self.channel.loseConnection()
        else:
            super().process()

    def _refuse(self) -> None:
        self._refused = True
        # The channel's own attribute: it passes the path to a request only after the whole body has arrived.
        self.channel.transport.write(refusal(self.channel._path))


class PatientServer(Server):  # type: ignore[misc]
    """A server that makes applications wait for clients that do not read. `body_most`: bytes of one request body."""

    def __init__(self, *, body_most: int, **options: Any) -> None:
        self._body_most = body_most
        super().__init__(
            websocket_max_message_size=LONGEST_MESSAGE,
            websocket_max_frame_size=LONGEST_MESSAGE,
            ready_callable=self._ready,
            **options,
        )

    def _ready(self) -> None:
        # The factories have just been created: one with a limit for both directions, the other with none.
        self.ws_factory.protocol = Socket
        build = self.http_factory.buildProtocol

        def limited(address: Any) -> Any:
            protocol = build(address)
            protocol.requestFactory = partial(LimitedRequest, body_most=self._body_most)
            return protocol

        self.http_factory.buildProtocol = limited

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a message, and return when there is room for more or the client is gone."""
        await super().handle_reply(protocol, message)
        taken, since = None, time.monotonic()
        while transport := self._full(protocol):  # polled, because Twisted notifies only its own producers
            if taken != (taken := (transport.offset, len(transport.dataBuffer))):
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE_SECONDS:
                transport.abortConnection()
            await asyncio.sleep(FULL_SECONDS)

    def _full(self, protocol: Any) -> Any:
        """Return Twisted's transport of a connection whose buffer is full; None if there is room, or nobody to read."""
        connection = self.connections.get(protocol)
        if connection is None or "disconnected" in connection:
            return None
        transport = getattr(protocol, "channel", protocol).transport
        # Set by Twisted while more is written than the system accepts: 64 KiB beyond the socket's own buffer.
        return transport if getattr(transport, "producerPaused", False) else None
