"""Server-sent events of a conversation or a prompt, from any past step on, and then live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import Error
from django.db.models import Min
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.request import Request

from conversations.api.describe import EVENTS, NO_MORE_EVENTS, RESUMING, operation
from conversations.api.errors import Invalid, of_framework
from conversations.api.views import ApiView
from conversations.database.ids import row_id
from conversations.database.threads import read
from conversations.models import ApiKey, Prompt, Step
from conversations.push.access import NOT_FOUND, ListeningRefused, Pass, pass_by_session, pass_to_conversation
from conversations.push.event_reader import TERMINAL, SentEvent, last_step
from conversations.push.feed import EventFeed, text_of
from conversations.push.growth import Delta
from conversations.push.hub import Hub
from conversations.push.listener import Listener, ListeningEnded
from conversations.push.share import TooMany, shares

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
"""Silence after which a comment is sent: proxies keep the stream open, and a lost client is noticed."""
HEARTBEAT = b":\n\n"
RETRY_MS = 2000
"""How long a client waits before it reconnects."""
FULL, FULL_SECONDS = "You have too many streams and sockets open: close some.", 30
"""The message when a user has too many streams open, and when to try again."""
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventsView(ApiView):
    """A view that streams events. It is asynchronous, which the REST framework's own `dispatch` is not."""

    async def dispatch(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Answer a request, also one that is refused."""
        try:
            if request.method != "GET":
                response = of_framework(exceptions.MethodNotAllowed(str(request.method))).response()
                response.headers["Allow"] = "GET"
                return response
            subscription = await self.get(request, pk)
            shares.raise_if_full(subscription.entry.user)
        except TooMany:
            return of_framework(exceptions.Throttled(FULL_SECONDS, FULL)).response()
        except exceptions.APIException as error:
            return of_framework(error).response()
        if subscription.had_end:
            return HttpResponse(status=204)
        stream = _stream(subscription)
        return StreamingHttpResponse(stream, content_type="text/event-stream", headers=HEADERS)

    def subscribe(self, request: HttpRequest, conversation: int | None, prompt: int | None) -> _Subscription:
        """Authenticate and rate-limit the request like the rest of the API. Raises an APIException."""
        asked = self.initialize_request(request)
        self.initial(asked)
        after = _after(request)
        if prompt is not None:
            conversation = Prompt.objects.filter(pk=prompt).values_list("conversation", flat=True).first()
        if conversation is None:
            raise exceptions.NotFound
        try:
            entry = pass_to_conversation(entry_of(asked), conversation)
        except ListeningRefused as refused:
            raise exceptions.NotFound if refused.code == NOT_FOUND else exceptions.NotAuthenticated from refused
        if prompt is None:
            return _Subscription(entry, conversation, None, after, last_step(conversation), had_end=False)
        steps = Step.objects.filter(conversation=conversation, prompt=prompt)
        ends = steps.filter(path="", type="action_result", seq__lte=after)
        first: int = steps.aggregate(first=Min("seq"))["first"] or 1
        after, present = max(after, first - 1), last_step(conversation)
        return _Subscription(entry, conversation, prompt, after, present, had_end=ends.exists())


class ConversationEvents(EventsView):
    """All events of a conversation."""

    @operation("Follow a conversation", EVENTS, parameters=RESUMING)
    async def get(self, request: HttpRequest, pk: int) -> _Subscription:
        """Stream what happened after a step, and then what happens, as server-sent events."""
        return await read(self.subscribe, request, pk, None)


class PromptEvents(EventsView):
    """The events of one prompt."""

    @operation("Follow a prompt", EVENTS | NO_MORE_EVENTS, parameters=RESUMING)
    async def get(self, request: HttpRequest, pk: int) -> _Subscription:
        """Stream what happened after a step, and then what happens, as server-sent events.

        The stream ends after the prompt's last event. 204 if you already have that one: a browser then does not
        reconnect.
        """
        return await read(self.subscribe, request, None, pk)


def _after(request: HttpRequest) -> int:
    """Return the step that the header names, else the one that the query names. Raises Invalid if either is none."""
    named = [row_id(text) for text in (request.headers.get("Last-Event-ID"), request.GET.get("after")) if text]
    if None in named:
        raise Invalid({"after": ["Send the number of a step, here or as Last-Event-ID."]})
    return next((seq for seq in named if seq is not None), 0)


@dataclass(frozen=True)
class _Subscription:
    """Who listens, to what, and from where on. `present`: the last step at that time.

    `had_end`: the client already has the end of the prompt.
    """

    entry: Pass
    conversation: int
    prompt: int | None
    after: int
    present: int
    had_end: bool

    def wants(self, frame: SentEvent | Delta) -> bool:
        """Whether a frame of the conversation belongs to the requested prompt, if there is one."""
        return self.prompt in (None, frame.prompt)


def entry_of(asked: Request) -> Pass:
    """Return the pass by which this request, which was authenticated, may listen. Raises ListeningRefused."""
    if isinstance(asked.auth, ApiKey):
        return Pass(asked.user.pk, key=asked.auth.pk)
    return pass_by_session(asked.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))


async def _stream(subscription: _Subscription) -> AsyncIterator[bytes]:
    """Yield the events until the prompt ends or the client may not listen any more."""
    release_thread()
    listener = Listener(subscription.entry)
    try:
        hub = Hub.enter(listener)
    except TooMany:
        return  # others came first after room was found for this one; the client reconnects
    try:
        yield f"retry: {RETRY_MS}\n\n".encode()
        feed = EventFeed(hub, listener, subscription.conversation, subscription.after, subscription.present)
        async for frame in _frames(feed):
            if listener.ended:
                return
            yield _encode(frame) if frame and subscription.wants(frame) else HEARTBEAT
            if frame and subscription.wants(frame) and subscription.prompt and frame.type in TERMINAL:
                return
    except ListeningEnded:
        return
    except Error:
        logger.warning("a stream was closed because the database does not answer", exc_info=True)
    finally:
        await hub.leave(listener)


def release_thread() -> None:
    """End the thread that Django keeps for a request's synchronous code to its end: that of a stream may be far off."""
    request = SyncToAsync.thread_sensitive_context.get(None)
    thread = SyncToAsync.context_to_thread_executor.pop(request, None) if request else None
    if isinstance(thread, ThreadPoolExecutor):
        thread.shutdown(wait=False)


async def _frames(feed: EventFeed) -> AsyncIterator[SentEvent | Delta | None]:
    """Yield the frames of the feed, and None after each HEARTBEAT_SECONDS of silence. Raises ListeningEnded."""
    while True:
        try:
            frames = await asyncio.wait_for(feed.next(), HEARTBEAT_SECONDS)
        except TimeoutError:
            yield None
            continue
        async for frame in frames:
            yield frame


def _encode(frame: SentEvent | Delta) -> bytes:
    """Encode an event. Only the last event of a step carries the id, so that clients resume between steps."""
    numbered = f"id: {frame.seq}\n" if isinstance(frame, SentEvent) and frame.last else ""
    return f"{numbered}event: {frame.type}\ndata: {text_of(frame)}\n\n".encode()
