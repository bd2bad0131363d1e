"""The web server: Daphne with backpressure in both directions.

An application that sends waits until the client has read what was sent before, and no more of a request's body is kept
than the site accepts (agentsite.bodies). Daphne by itself buffers everything in both directions, so that one client
could use all memory.

It serves a socket that listens already, which several processes may share: whichever is free takes the next
connection, and one that dies takes with it only those that it had.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import reactor
from twisted.internet.tcp import Port

from agents.passthrough.exchange import CUT
from agentsite.bodies import (
    BODY,
    HEAD_SECONDS,
    WAITING_PERSON,
    WAITING_SITE,
    Channel,
    LimitedRequest,
    Limits,
    Room,
    reading,
)

FULL_SECONDS = (0.001, 0.05)
"""Seconds between two checks whether a client with a full buffer reads again: at first, and twice as long each time, up
to this. One that reads all the time has a page of 400 KB without a pause."""
PATIENCE_SECONDS = 60.0
"""Seconds after which a client that reads nothing is disconnected. A phone in a tunnel is back by then; one gone for
longer reconnects. Without the limit its task, its messages and 64 KiB would be kept, for some clients forever."""
LONGEST_MESSAGE = 4096
"""Bytes of one WebSocket message from a client: pages send next to nothing. A longer message is refused unread."""


EARLY_MOST = 64 * 1024
"""Bytes that a client may send before its socket is accepted, with the headers. Browsers send nothing until then."""
WAITING_MOST = 64
"""Messages of one client that wait for the application. One that sends more is cut off: a page sends one in seconds."""


class Socket(WebSocketProtocol):  # type: ignore[misc]
    """A WebSocket for which a client can make the server keep only so much.

    Its size limit holds for the client's messages only: autobahn would apply it to the site's, too.
    """

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - autobahn's names, here and below
        """Handle what has arrived."""
        super().dataReceived(data)
        if self.state == self.STATE_CONNECTING and len(self.data) > EARLY_MOST:
            self.dropConnection(abort=True)

    def onPing(self, payload: bytes) -> None:  # noqa: N802
        """Answer, unless the client does not read what waits for it: pongs would pile up, too."""
        if not self.transport.producerPaused:
            super().onPing(payload)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        """Hand a message to the application, or end the connection if too many wait."""
        if self.application_queue.qsize() < WAITING_MOST:
            super().onMessage(payload, isBinary)
        else:
            self.dropConnection(abort=True)

    def sendMessage(self, payload: bytes, isBinary: bool = False) -> None:  # noqa: N802, N803
        """Send a message of any length, if the socket is open."""
        if self.state == self.STATE_OPEN:
            self.sendPreparedMessage(self.factory.prepareMessage(payload, isBinary, doNotCompress=True))


class FairPort(Port):
    """A listening socket from which one connection is taken at a time.

    Twisted takes up to a hundred at once: with several processes, all connections of a busy moment would be those of
    one of them, while the others have nothing to do.
    """

    numberAccepts = property(lambda self: 1, lambda self, most: None)  # noqa: N815 - Twisted's name, which it also sets


class PatientServer(Server):  # type: ignore[misc]
    """A server that makes applications wait for clients that do not read.

    `limits`: of request bodies. `listener`: a socket that listens. `ready` is called when it takes the first ones.
    """

    def __init__(
        self,
        *,
        application: Callable[..., Awaitable[None]],
        limits: Limits,
        listener: socket.socket,
        ready: Callable[[], object] = lambda: None,
        **options: Any,
    ) -> None:
        self._limits, self._listener, self._tell_ready = limits, listener, ready
        self._room, self._waiting_room = Room(), Room(WAITING_PERSON, WAITING_SITE)
        super().__init__(
            application=reading(application),
            websocket_max_message_size=LONGEST_MESSAGE,
            websocket_max_frame_size=LONGEST_MESSAGE,
            ready_callable=self._ready,
            endpoints=["the listener"],  # Daphne insists on one, and would open it itself
            **options,
        )
        self.endpoints: list[str] = []

    def _ready(self) -> None:
        # The factories have just been created: one with a limit for both directions, the other with none.
        self.ws_factory.protocol = Socket
        self.http_factory.protocol, self.http_factory.timeOut = Channel, HEAD_SECONDS
        build = self.http_factory.buildProtocol

        def limited(address: Any) -> Any:
            protocol = build(address)
            protocol.requestFactory = partial(
                LimitedRequest, limits=self._limits, room=self._room, waiting_room=self._waiting_room
            )
            return protocol

        self.http_factory.buildProtocol = limited
        listener = self._listener
        adopt: Any = FairPort._fromListeningDescriptor
        adopt(reactor, listener.fileno(), listener.family, self.http_factory).startListening()
        self._tell_ready()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Start the application for a request or a WebSocket. Returns the queue of what it receives."""
        if scope["type"] == "http":
            scope[BODY] = protocol.hand_over()
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a message, and return when there is room for more or the client is gone.

        `http.response.cut`, an extension of ASGI, ends the connection instead: what the client has is not all.
        """
        if message["type"] == CUT:
            self._cut(protocol)
            return
        await super().handle_reply(protocol, message)
        taken, since, (pause, longest) = None, time.monotonic(), FULL_SECONDS
        while transport := self._full(protocol):  # polled, because Twisted notifies only its own producers
            if taken != (taken := (transport.offset, len(transport.dataBuffer))):
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE_SECONDS:
                transport.abortConnection()
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    def _cut(self, protocol: Any) -> None:
        """End a connection once the client has what was sent: it then sees that the end is missing."""
        if protocol not in self.connections or protocol.channel is None:
            return
        if protocol.clientproto == b"HTTP/1.0":  # in which an end of the connection is the end of an answer
            protocol.channel.transport.abortConnection()
        else:
            protocol.channel.loseConnection()

    def _full(self, protocol: Any) -> Any:
        """Return Twisted's transport of a connection whose buffer is full; None if there is room, or nobody to read."""
        connection = self.connections.get(protocol)
        if connection is None or "disconnected" in connection:
            return None
        transport = getattr(protocol, "channel", protocol).transport
        # Set by Twisted while more is written than the system accepts: 64 KiB beyond the socket's own buffer.
        return transport if getattr(transport, "producerPaused", False) else None
