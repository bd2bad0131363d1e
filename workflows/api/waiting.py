"""Waiting for the end of a run in the event loop, without asking the database again and again."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from django.db import Error

from conversations.push.access import Pass
from conversations.push.event_reader import TERMINAL
from conversations.push.feed import EventFeed
from conversations.push.hub import Hub
from conversations.push.listener import Listener, ListeningEnded
from conversations.push.share import TooMany

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AwaitedRun:
    """A run whose end a client waits for, at most `seconds`. `after`: a step of its conversation before its first."""

    entry: Pass
    conversation: int
    prompt: int
    after: int
    seconds: int

    async def ends(self) -> bool:
        """Wait for its end; return whether it was seen.

        A client that waits follows the conversation like one with an open stream: the one tailer of this web process
        hears of each commit and tells all its clients, so that a hundred of them cost no more queries than one. Like a
        stream, each counts towards AGENTSITE_STREAMS.
        """
        listener = Listener(self.entry)
        try:
            hub = Hub.enter(listener)
        except TooMany:
            return False  # others came first after room was found for this one
        try:
            async with asyncio.timeout(self.seconds):
                return await self._seen(EventFeed(hub, listener, self.conversation, self.after, self.after))
        except (TimeoutError, ListeningEnded):
            return False
        except Error:
            logger.warning("a client waits no longer because the database does not answer", exc_info=True)
            return False
        finally:
            await hub.leave(listener)

    async def _seen(self, feed: EventFeed) -> bool:
        while True:
            async for frame in await feed.next():
                if frame.prompt == self.prompt and frame.type in TERMINAL:
                    return True
