"""The hub: hands what the tailer publishes to the clients of this process, and ends those who may not listen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db import Error

from conversations.database.threads import read
from conversations.push.access import SIGN_IN, Pass, expired_passes
from conversations.push.listener import Listener
from conversations.push.share import shares
from conversations.push.tailer import Followed, Tailer
from conversations.push.topics import Topic

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
"""Interval between two checks of whether each client may still listen, and whether the tailer still runs."""


class Hub:
    """The clients of one event loop. Its tailer and its checks run while there are any."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._topics: dict[Listener, Topic[Any] | None] = {}
        self.tailer = Tailer(self._publish)
        self.tailer.start()
        read.hold()
        self._checks = self._loop.create_task(self._keep_checking())

    @classmethod
    def current(cls) -> Hub:
        """Return the hub of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in _hubs:
            _hubs[loop] = cls()
        return _hubs[loop]

    @classmethod
    def enter(cls, listener: Listener) -> Hub:
        """Register a client with the hub of the running event loop, until it leaves. Raises TooMany."""
        shares.enter(listener.entry.user)
        hub = cls.current()
        hub._topics[listener] = None
        return hub

    def follow(self, listener: Listener, topic: Followed) -> Followed:
        """Queue the topic's messages for a client, which first reads from the database.

        Returns the topic that is shared by all clients who follow the same.
        """
        self._topics[listener] = held = self.tailer.follow(topic, listener)
        listener.fall_behind()
        return held

    async def leave(self, listener: Listener) -> None:
        """Remove a client. With the last one the tailer ends."""
        topic = self._topics.pop(listener)
        shares.leave(listener.entry.user)
        if topic:
            self.tailer.leave(topic, listener)
        if not self._topics:
            _hubs.pop(self._loop, None)  # a client that comes now starts a new hub
            self._checks.cancel()
            stopped = self._loop.run_in_executor(None, self.tailer.stop)  # also if what waits here is cancelled
            await read.release()
            await stopped

    def end(self, which: Callable[[Pass], bool]) -> None:
        """End the clients with such a pass. May be called from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and its clients with it
            self._loop.call_soon_threadsafe(self._end_where, which)

    def _end_where(self, which: Callable[[Pass], bool]) -> None:
        for listener in [each for each in self._topics if which(each.entry)]:
            listener.end(SIGN_IN)

    def _publish(self, topic: Topic[Any], message: Any | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._deliver, topic, message)

    def _deliver(self, topic: Topic[Any], message: Any | None) -> None:
        for listener in topic.listeners:
            if message is None:
                listener.fall_behind()
            else:
                listener.put(message)

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.tailer.keep_running()
            await self._check_passes()

    async def _check_passes(self) -> None:
        """End the clients that may not listen any more. If this fails, the next check does it."""
        listeners = list(self._topics)
        try:
            codes = await read(expired_passes, {listener.entry for listener in listeners})
            for listener in listeners:
                if listener.entry in codes:
                    listener.end(codes[listener.entry])
        except Error:
            logger.warning("cannot check who may listen: the database does not answer", exc_info=True)
        except Exception:
            logger.exception("checking who may listen failed; trying again")


_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def end_session(key: str) -> None:
    """Stop sending to the sockets and streams of this process that were opened by a session, because it has ended."""
    for hub in list(_hubs.values()):
        hub.end(lambda entry: entry.session == key)


def _logged_out(sender: object, request: Any, **more: object) -> None:
    if key := getattr(getattr(request, "session", None), "session_key", None):
        end_session(key)


user_logged_out.connect(_logged_out, dispatch_uid="push")
