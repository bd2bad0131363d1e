"""Hands what the tailer publishes to the clients of this process, and looks after who may still listen."""

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
from conversations.push.access import SIGN_IN, Pass, lapsed
from conversations.push.share import shares
from conversations.push.tailer import Followed, Tailer
from conversations.push.topics import Body, Topic

logger = logging.getLogger(__name__)

PULSE_SECONDS = 1.0
"""How often clients that lack a message are told so: the last one may have been lost, and no other shows it."""
CHECK_PULSES = 5
"""Every so many pulses it is asked whether each client may still listen."""


class Listener:
    """One open socket or stream: by what it was let in, what it follows, and how it is ended."""

    def __init__(self, entry: Pass, channel: str, end: Callable[[int], None]) -> None:
        """`end` is called in the event loop with a close code, once, when it may no longer listen."""
        self.entry, self.channel, self._end = entry, channel, end
        self.topic: Topic | None = None
        self.seen = 0  # the number of the last message that it had, or needs no more
        self.lacked = 0  # the number that it had not seen at the last pulse
        self.ended = False

    def end(self, code: int) -> None:
        """It may not listen any more: nothing is delivered after this."""
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
        self._tasks = [self._loop.create_task(self._hand_on()), self._loop.create_task(self._look_after())]

    @classmethod
    def here(cls) -> Hub:
        """The hub of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in _hubs:
            _hubs[loop] = cls()
        return _hubs[loop]

    @classmethod
    def enter(cls, listener: Listener) -> Hub:
        """A client has come to the running event loop, and is looked after until it leaves. Raises TooMany."""
        shares.enter(listener.entry.user)
        hub = cls.here()
        hub._listeners.add(listener)
        return hub

    async def follow(self, listener: Listener, topic: Followed) -> Followed:
        """Give a client the topic's messages from now on. Returns the topic that all who follow it share."""
        listener.topic = held = self.tailer.follow(topic)
        await self.follow_again(listener)
        return held

    async def follow_again(self, listener: Listener) -> None:
        """Make sure that it gets them: a layer forgets a channel that was not read for long."""
        if listener.topic:
            await self.layer.group_add(listener.topic.group, listener.channel)

    async def leave(self, listener: Listener) -> None:
        """A client that entered has gone. With the last of them the tailer ends."""
        self._listeners.remove(listener)
        shares.leave(listener.entry.user)
        if listener.topic:
            self.tailer.leave(listener.topic)
        last = not self._listeners
        if last:
            _hubs.pop(self._loop, None)  # who comes now begins another
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
        """End the clients that were let in by such a pass. May be called from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and they with it
            self._loop.call_soon_threadsafe(self._end_where, which)

    def _end_where(self, which: Callable[[Pass], bool]) -> None:
        for listener in [each for each in self._listeners if which(each.entry)]:
            listener.end(SIGN_IN)

    def _publish(self, group: str, number: int, body: Body) -> None:
        message = {"type": "topic.message", "number": number, **body}
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._published.put_nowait, (group, message))

    async def _hand_on(self) -> None:
        while True:
            group, message = await self._published.get()
            try:
                await self.layer.group_send(group, message)
            except Exception:  # the next number, or the pulse, shows that one is missing
                logger.exception("a message was not handed on", extra={"topic": group})

    async def _look_after(self) -> None:
        pulses = 0
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            pulses += 1
            for listener in list(self._listeners):
                await self._pulse(listener)
            if pulses % CHECK_PULSES == 0:
                await self._check()

    async def _pulse(self, listener: Listener) -> None:
        """Tell a client that lacks what was there a pulse ago already."""
        number = listener.topic.number if listener.topic else 0
        if listener.seen < listener.lacked:
            try:
                await self.layer.send(listener.channel, {"type": "topic.pulse"})
            except ChannelFull:
                pass  # it has enough to read; the next pulse finds it again
            except Exception:
                logger.exception("a client was not told that it lacks something; the next pulse tells it")
        listener.lacked = number

    async def _check(self) -> None:
        """End those who may not listen any more. Whatever fails, the next check finds them."""
        listeners = list(self._listeners)
        try:
            codes = await read(lapsed, {listener.entry for listener in listeners})
            for listener in listeners:
                if listener.entry in codes:
                    listener.end(codes[listener.entry])
        except Error:
            logger.warning("who may listen cannot be checked now", exc_info=True)
        except Exception:
            logger.exception("who may listen was not checked; trying again")


_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def end_session(key: str) -> None:
    """A session has ended: nothing more goes to the sockets and streams of this process that it opened."""
    for hub in list(_hubs.values()):
        hub.end(lambda entry: entry.session == key)


def _logged_out(sender: object, request: Any, **more: object) -> None:
    if key := getattr(getattr(request, "session", None), "session_key", None):
        end_session(key)


user_logged_out.connect(_logged_out, dispatch_uid="push")
