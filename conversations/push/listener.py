"""Listeners: the open sockets and streams of this process, each with a queue of what its topic published."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from conversations.push.access import Pass

QUEUE_MOST = 100
"""How many messages wait for one client. A client that has more to read reads the database instead."""


class ListeningEnded(Exception):
    """The client may not listen any more. `code` is the close code of its socket."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Listener:
    """An open socket or stream: its pass, and the messages that wait for it. Used in the event loop only."""

    def __init__(self, entry: Pass) -> None:
        self.entry = entry
        self._queue: deque[Any] = deque()
        self._behind = False
        self._code: int | None = None
        self._ready = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing may be sent to this client any more."""
        return self._code is not None

    def put(self, message: Any) -> None:
        """Queue a message of the topic. If too many wait, the client reads the database instead of them."""
        if len(self._queue) >= QUEUE_MOST:
            self.fall_behind()
        elif not self._behind:
            self._queue.append(message)
            self._ready.set()

    def fall_behind(self) -> None:
        """Have the client read from the database, instead of the messages that wait now."""
        self._behind = True
        self._queue.clear()
        self._ready.set()

    def end(self, code: int) -> None:
        """End the client, because it may not listen any more."""
        if not self.ended:
            self._code = code
            self._ready.set()

    def raise_if_ended(self) -> None:
        """Raise ListeningEnded if nothing may be sent to this client any more."""
        if self._code is not None:
            raise ListeningEnded(self._code)

    async def next(self) -> Any | None:
        """Wait for the next message; None means: read from the database. Raises ListeningEnded.

        Messages that are published from now on come after it: what is then read from the database may contain them.
        """
        await self._ready.wait()
        self.raise_if_ended()
        message = None if self._behind else self._queue.popleft()
        self._behind = False
        if not self._queue:
            self._ready.clear()
        return message
