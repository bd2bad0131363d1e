"""The hub: distributes what the tailer publishes to the clients of this process, and ends those who may not listen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from django.contrib.auth.signals import user_logged_out
from django.db import Error

from conversations.database.threads import read
from conversations.push.access import SIGN_IN, Pass, expired_passes
from conversations.push.share import shares
from conversations.push.tailer import Followed, Tailer
from conversations.push.topics import Body, Topic

logger = logging.getLogger(__name__)

PULSE_SECONDS = 1.0
"""Interval at which clients are told that they lack a message: no later message shows that the last one was lost."""
CHECK_PULSES = 5
"""Every so many pulses, check whether each client may still listen."""


class Listener:
    """An open socket or stream: its pass, its topic, and how to end it."""

    def __init__(self, entry: Pass, channel: str, end: Callable[[int], None]) -> None:
        """`end` is called once in the event loop, with a close code, when the client may no longer listen."""
        self.entry, self.channel, self._end = entry, channel, end
        self.topic: Topic | None = None
        self.seen = 0  # number of the last message that it received, or that it does not need
        self.last_pulse = 0  # number of the topic at the last pulse
        self.ended = False

    def end(self, code: int) -> None:
        """End the client, because it may not listen any more. Nothing is delivered after this."""
        if not self.ended:
            self.ended = True
            self._end(code)


class Hub:
    """The clients of one event loop. Its tailer and its tasks run while there are any."""

    def __init__(self) -> None:
        self.layer: Any = get_channel_layer()
        self._loop = asyncio.get_running_loop()
        self._listeners: set[Listener] = set()
        self._published: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self.tailer = Tailer(self._publish)
        self.tailer.start()
        read.hold()
        self._tasks = [self._loop.create_task(self._forward()), self._loop.create_task(self._supervise())]

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
        hub._listeners.add(listener)
        return hub

    async def follow(self, listener: Listener, topic: Followed) -> Followed:
        """Deliver the topic's messages to a client from now on. Returns the topic shared by all of its followers."""
        listener.topic = held = self.tailer.follow(topic)
        await self.rejoin(listener)
        return held

    async def rejoin(self, listener: Listener) -> None:
        """Join the group again: a channel layer forgets a channel that was not read for long."""
        if listener.topic:
            await self.layer.group_add(listener.topic.group, listener.channel)

    async def leave(self, listener: Listener) -> None:
        """Remove a client. With the last one the tailer ends."""
        self._listeners.remove(listener)
        shares.leave(listener.entry.user)
        if listener.topic:
            self.tailer.leave(listener.topic)
        last = not self._listeners
        if last:
            _hubs.pop(self._loop, None)  # a client that comes now starts a new hub
        if listener.topic:
            await self.layer.group_discard(listener.topic.group, listener.channel)
        if last:
            await self._close()

    async def _close(self) -> None:
        self.tailer.stop()
        for task in self._tasks:
            task.cancel()
        await read.release()
        await asyncio.to_thread(self.tailer.join)

    def end(self, which: Callable[[Pass], bool]) -> None:
        """End the clients with such a pass. May be called from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and its clients with it
            self._loop.call_soon_threadsafe(self._end_where, which)

    def _end_where(self, which: Callable[[Pass], bool]) -> None:
        for listener in [each for each in self._listeners if which(each.entry)]:
            listener.end(SIGN_IN)

    def _publish(self, group: str, number: int, body: Body) -> None:
        message = {"type": "topic.message", "number": number, **body}
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._published.put_nowait, (group, message))

    async def _forward(self) -> None:
        while True:
            group, message = await self._published.get()
            try:
                await self.layer.group_send(group, message)
            except Exception:  # the next number or pulse shows that one is missing
                logger.exception("could not forward a message", extra={"topic": group})

    async def _supervise(self) -> None:
        pulses = 0
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            pulses += 1
            for listener in list(self._listeners):
                await self._pulse(listener)
            if pulses % CHECK_PULSES == 0:
                await self._check()

    async def _pulse(self, listener: Listener) -> None:
        """Notify a client that still lacks what was published before the last pulse."""
        number = listener.topic.number if listener.topic else 0
        if listener.seen < listener.last_pulse:
            try:
                await self.layer.send(listener.channel, {"type": "topic.pulse"})
            except ChannelFull:
                pass  # it has enough to read; the next pulse tries again
            except Exception:
                logger.exception("could not notify a client that it lacks a message; the next pulse tries again")
        listener.last_pulse = number

    async def _check(self) -> None:
        """End the clients that may not listen any more. If this fails, the next check does it."""
        listeners = list(self._listeners)
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
