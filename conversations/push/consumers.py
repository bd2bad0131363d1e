"""WebSockets. What they send comes from a feed; what they receive decides nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from contextlib import AsyncExitStack, suppress
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from conversations.accounts.presence import record_presence
from conversations.database.threads import read, write
from conversations.prompts.listing import mark_seen
from conversations.push.access import ListeningRefused, Pass, admit, pass_to_approvals, pass_to_conversation
from conversations.push.event_reader import last_step
from conversations.push.feed import EventFeed, Feed, PageFeed, PersonFeed, text_of
from conversations.push.hub import Hub
from conversations.push.listener import Listener, ListeningEnded
from conversations.push.share import TooMany, shares
from conversations.push.topics import ApprovalsTopic, ListTopic, PersonTopic

logger = logging.getLogger(__name__)

FAILED, TRY_AGAIN, TOO_MUCH = 4500, 4503, 4429
"""Close codes: an error of ours; the database does not answer; more sockets or messages than one user's pages need.

All are from 4000 to 4999: Daphne refuses those that the protocol keeps for servers, such as 1011.
"""
LONGEST = 200
"""Maximum length of a message from a client, in characters."""
MOST, MOST_SECONDS = 30, 10.0
"""How many messages a client may send in how many seconds."""
LOOKED_SECONDS = 10.0
"""How precisely the time is stored at which a user last looked."""


class SocketConsumer(AsyncConsumer):  # type: ignore[misc]
    """One WebSocket: admitted or refused, served by a task of its own while it may listen, removed when it closes."""

    listener: Listener | None = None
    follows: type[PersonTopic]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket to its end, however it ends."""
        async with AsyncExitStack() as self.open:
            await super().__call__(scope, receive, send)

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        """Admit the client, and begin to send."""
        self._received_at: deque[float] = deque(maxlen=MOST)
        request = ASGIRequest({**self.scope, "type": "http", "method": "GET"}, BytesIO())
        try:
            listener = Listener(await read(self.authorize, request))
        except ListeningRefused as refused:
            if refused.code:
                await self.send({"type": "websocket.accept"})
            await self._close(refused.code)
            return
        except Error:
            logger.warning("a socket was refused because the database does not answer", exc_info=True)
            await self._close(TRY_AGAIN)
            return
        await self.send({"type": "websocket.accept"})
        try:
            hub = Hub.enter(listener)
        except TooMany:
            await self._close(TOO_MUCH)
            return
        self.listener = listener
        self.open.push_async_callback(hub.leave, listener)
        self.feed = self.make_feed(hub, listener)
        sending = asyncio.ensure_future(self._send_all(listener))
        self.open.callback(sending.cancel)

    def authorize(self, request: ASGIRequest) -> Pass:
        """Return the pass for what this socket sends. Raises ListeningRefused."""
        return admit(request)

    def make_feed(self, hub: Hub, listener: Listener) -> Feed[Any, Any]:
        """Return the feed that this socket sends."""
        return PersonFeed(hub, listener, self.follows)

    async def _send_all(self, listener: Listener) -> None:
        """Send what the feed brings, until the client may not listen any more."""
        try:
            while True:
                async for frame in await self.feed.next():
                    if listener.ended:
                        break
                    await self.send({"type": "websocket.send", "text": text_of(frame)})
        except ListeningEnded as ended:
            await self._close(ended.code)
        except Error:
            logger.warning("closing a socket because the database does not answer", exc_info=True)
            await self._close(TRY_AGAIN)
        except Exception:
            logger.exception("closing a socket because of an error")
            await self._close(FAILED)

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Handle a message of the page; ignore what makes no sense, and close a client that sends too much."""
        if self.listener is None or self.listener.ended:
            return
        text, now = message.get("text") or "", time.monotonic()
        if len(text) > LONGEST or (len(self._received_at) == MOST and now - self._received_at[0] < MOST_SECONDS):
            self.listener.end(TOO_MUCH)
            return
        self._received_at.append(now)
        with suppress(ValueError, RecursionError):
            data = json.loads(text)
            if isinstance(data, dict):
                await self.handle(data)

    async def handle(self, data: dict[str, Any]) -> None:
        """`{"looking": true}`: a page of this user is in view."""
        if data.get("looking") is True and self.listener:
            _record_look(self.listener.entry.user)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The client has closed the socket."""
        raise StopConsumer

    async def _close(self, code: int) -> None:
        """Close the socket; with code 0 without saying why."""
        if self.listener:
            self.listener.end(code)
        await self.send({"type": "websocket.close"} | ({"code": code} if code else {}))


class ConversationSocket(SocketConsumer):
    """`ws/conversations/<id>/?after=<seq>`: the page's HTML, or with `format=json` the events of the API."""

    _seen_seq = 0

    def authorize(self, request: ASGIRequest) -> Pass:
        """Return the pass for the conversation of the URL. Raises ListeningRefused."""
        conversation = self.scope["url_route"]["kwargs"]["pk"]
        entry = pass_to_conversation(admit(request), conversation)
        self._present = last_step(conversation)
        return entry

    def make_feed(self, hub: Hub, listener: Listener) -> Feed[Any, Any]:
        """Return the feed of events or of HTML, as `format` says."""
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        after = query.get("after", ["0"])[-1]
        seq = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
        conversation = self.scope["url_route"]["kwargs"]["pk"]
        if query.get("format", [""])[-1] == "json":
            return EventFeed(hub, listener, conversation, seq, self._present)
        return PageFeed(hub, listener, conversation, seq)

    async def handle(self, data: dict[str, Any]) -> None:
        """`{"refresh": <seq>}`: the page noticed that it lacks something.

        `{"looking": true, "seen": <seq>}`: it is in view, scrolled to its end, and at this step.
        """
        self._record_seen(data)
        seq = data.get("refresh")
        if type(seq) is int and seq >= 0 and isinstance(self.feed, PageFeed) and self.listener:
            try:
                shares.refresh(self.listener.entry.user)
            except TooMany:
                self.listener.end(TOO_MUCH)
                return
            self.feed.refresh(seq)
        await super().handle(data)

    def _record_seen(self, data: dict[str, Any]) -> None:
        seq = data.get("seen")
        if (
            data.get("looking") is True
            and type(seq) is int
            and self._seen_seq < seq < 2**63
            and isinstance(self.feed, PageFeed)
        ):
            self._seen_seq = seq
            write.run_later(mark_seen, self.scope["url_route"]["kwargs"]["pk"], seq)


class PersonSocket(SocketConsumer):
    """`ws/me/`: the user's list of conversations and the notices to everybody, as HTML for every page."""

    follows = ListTopic


class ApprovalsSocket(SocketConsumer):
    """`ws/approvals/`: for people who decide, in the inbox or in the admin, as JSON."""

    follows = ApprovalsTopic

    def authorize(self, request: ASGIRequest) -> Pass:
        """Return the pass for approvals. Raises ListeningRefused."""
        return pass_to_approvals(admit(request))


class UnknownSocket(SocketConsumer):
    """Any other address: refused."""

    def authorize(self, request: ASGIRequest) -> Pass:
        """Raise ListeningRefused."""
        raise ListeningRefused


_last_looked: dict[int, float] = {}


def _record_look(user: int) -> None:
    now = time.monotonic()
    if now - _last_looked.get(user, -LOOKED_SECONDS) >= LOOKED_SECONDS:
        for one in [one for one, at in _last_looked.items() if now - at >= LOOKED_SECONDS]:
            del _last_looked[one]
        _last_looked[user] = now
        write.run_later(record_presence, user)
