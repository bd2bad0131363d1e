"""Daphne, made patient: what an application sends waits until the client has taken what was sent before.

Daphne by itself keeps whatever is sent in memory, so that a client which reads nothing takes all there is.
"""

import asyncio
import time
from typing import Any

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


class PatientServer(Server):  # type: ignore[misc]
    """A server whose applications feel that a client does not read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            websocket_max_message_size=LONGEST_MESSAGE,
            websocket_max_frame_size=LONGEST_MESSAGE,
            ready_callable=self._ready,
            **options,
        )

    def _ready(self) -> None:
        self.ws_factory.protocol = Socket  # made just now, with a limit for both directions

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
