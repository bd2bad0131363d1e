"""The sockets. What they send is a feed's; what they take from a client decides nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from conversations.accounts.presence import looked
from conversations.database.threads import read, write
from conversations.prompts.listing import mark_seen
from conversations.push.access import ListeningRefused, Pass, admit, to_approvals, to_conversation
from conversations.push.feed import ApprovalsFeed, EventFeed, Feed, ListFeed, PageFeed, text_of
from conversations.push.hub import Hub, Listener
from conversations.push.share import TooMany, shares

logger = logging.getLogger(__name__)

TRY_AGAIN, TOO_MUCH = 1013, 4429
"""Close codes: the database does not answer; more sockets or messages than one person's pages need."""
LONGEST = 200
"""Characters of a message from a client."""
MOST, MOST_SECONDS = 30, 10.0
"""Messages that a client may send in so many seconds."""
LOOKED_SECONDS = 10.0
"""How exactly it is kept when a person last looked."""


class SocketConsumer(AsyncConsumer):  # type: ignore[misc]
    """One WebSocket: let in or refused, fed while it may listen, and left behind when it goes."""

    listener: Listener | None = None
    hub: Hub
    feed: Feed[Any, Any]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket to its end, whatever ends it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self.listener:
                await self.hub.leave(self.listener)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle a message of the server, the client or the topic. Nothing here uses this thread's own database."""
        try:
            await getattr(self, message["type"].replace(".", "_"))(message)
        except Error:
            logger.warning("a socket is closed because the database does not answer", exc_info=True)
            await self._close(TRY_AGAIN)

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        """Let the client in, and bring it to the present."""
        self._said: deque[float] = deque(maxlen=MOST)
        request = ASGIRequest({**self.scope, "type": "http", "method": "GET"}, BytesIO())
        try:
            entry = await read(self.admitted, request)
        except ListeningRefused as refused:
            if refused.code:
                await self.send({"type": "websocket.accept"})
            await self._close(refused.code or None)
            return
        await self.send({"type": "websocket.accept"})
        listener = Listener(entry, self.channel_name, self._end)
        try:
            self.hub = Hub.enter(listener)
        except TooMany:
            await self._close(TOO_MUCH)
            return
        self.listener = listener
        self.feed = self.fed(listener)
        await self._send_all(self.feed.open())

    def admitted(self, request: ASGIRequest) -> Pass:
        """The pass to what this socket tells. Raises ListeningRefused."""
        return admit(request)

    def fed(self, listener: Listener) -> Feed[Any, Any]:
        """What goes over this socket."""
        raise NotImplementedError

    async def topic_message(self, message: dict[str, Any]) -> None:
        """The tailer has something."""
        await self._send_all(self.feed.take(message))

    async def topic_pulse(self, message: dict[str, Any]) -> None:
        """Something is there that this client has not had."""
        await self._send_all(self.feed.pulse())

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """What the page says, where it makes sense; a client that says too much is closed."""
        if self.listener is None or self.listener.ended:
            return
        text, now = message.get("text") or "", time.monotonic()
        if len(text) > LONGEST or (len(self._said) == MOST and now - self._said[0] < MOST_SECONDS):
            self.listener.end(TOO_MUCH)
            return
        self._said.append(now)
        with suppress(ValueError, RecursionError):
            said = json.loads(text)
            if isinstance(said, dict):
                await self.heard(said)

    async def heard(self, said: dict[str, Any]) -> None:
        """`{"looking": true}`: a page of this person is in view."""
        if said.get("looking") is True and self.listener:
            _looked(self.listener.entry.user)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The client has gone."""
        raise StopConsumer

    async def _send_all(self, frames: AsyncIterator[Any]) -> None:
        async for frame in frames:
            if self.listener is None or self.listener.ended:
                return
            await self.send({"type": "websocket.send", "text": text_of(frame)})

    def _end(self, code: int) -> None:
        self._ending = asyncio.ensure_future(self._close(code))

    async def _close(self, code: int | None = None) -> None:
        if self.listener:
            self.listener.ended = True
        await self.send({"type": "websocket.close"} | ({"code": code} if code else {}))


class ConversationSocket(SocketConsumer):
    """`ws/conversations/<id>/?after=<seq>`: the page's HTML, or with `format=json` the events of the API."""

    _saw = 0

    def admitted(self, request: ASGIRequest) -> Pass:
        """See SocketConsumer."""
        return to_conversation(admit(request), self.scope["url_route"]["kwargs"]["pk"])

    def fed(self, listener: Listener) -> Feed[Any, Any]:
        """See SocketConsumer."""
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        after = query.get("after", ["0"])[-1]
        seq = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
        kind = EventFeed if query.get("format", [""])[-1] == "json" else PageFeed
        return kind(self.hub, listener, self.scope["url_route"]["kwargs"]["pk"], seq)

    async def heard(self, said: dict[str, Any]) -> None:
        """`{"refresh": <seq>}`: the page noticed that it lacks something.

        `{"looking": true, "seen": <seq>}`: it is in view, at its end, and stands at this step.
        """
        self._seen(said)
        seq = said.get("refresh")
        if type(seq) is int and seq >= 0 and isinstance(self.feed, PageFeed) and self.listener:
            try:
                shares.refresh(self.listener.entry.user)
            except TooMany:
                self.listener.end(TOO_MUCH)
                return
            await self._send_all(self.feed.refresh(seq))
        await super().heard(said)

    def _seen(self, said: dict[str, Any]) -> None:
        seq = said.get("seen")
        if (
            said.get("looking") is True
            and type(seq) is int
            and self._saw < seq < 2**63
            and isinstance(self.feed, PageFeed)
        ):
            self._saw = seq
            write.later(mark_seen, self.scope["url_route"]["kwargs"]["pk"], seq)


class PersonSocket(SocketConsumer):
    """`ws/me/`: what belongs to the person on every page, as HTML."""

    def fed(self, listener: Listener) -> Feed[Any, Any]:
        """See SocketConsumer."""
        return ListFeed(self.hub, listener)


class ApprovalsSocket(SocketConsumer):
    """`ws/approvals/`: for people who decide in the admin, as JSON."""

    def admitted(self, request: ASGIRequest) -> Pass:
        """See SocketConsumer."""
        return to_approvals(admit(request))

    def fed(self, listener: Listener) -> Feed[Any, Any]:
        """See SocketConsumer."""
        return ApprovalsFeed(self.hub, listener)


class Nowhere(AsyncConsumer):  # type: ignore[misc]
    """Any other address: refused."""

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        """Refuse it."""
        await self.send({"type": "websocket.close"})

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """It has gone."""
        raise StopConsumer


_last_looked: dict[int, float] = {}


def _looked(user: int) -> None:
    now = time.monotonic()
    if now - _last_looked.get(user, -LOOKED_SECONDS) >= LOOKED_SECONDS:
        for one in [one for one, at in _last_looked.items() if now - at >= LOOKED_SECONDS]:
            del _last_looked[one]
        _last_looked[user] = now
        write.later(looked, user)
