"""Feeds: what one client gets of a topic. Every change once and in order, and the database where one is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, TypeVar

from conversations.database.threads import read
from conversations.push.event_reader import TERMINAL, EventReader, SentEvent
from conversations.push.growth import Delta, Growth, KnownDrafts, Missed
from conversations.push.hub import Hub
from conversations.push.list_state import ListedConversation, current_listing
from conversations.push.listener import Listener
from conversations.push.topics import (
    EventsMessage,
    EventsTopic,
    PageMessage,
    PageTopic,
    PersonTopic,
    Topic,
)

Frame = TypeVar("Frame", SentEvent | Delta, str)
Followed = TypeVar("Followed", bound=Topic[Any])


class Feed(Generic[Frame, Followed]):
    """What one client is sent."""

    def __init__(self, hub: Hub, listener: Listener, topic: Followed) -> None:
        self.listener = listener
        self.topic = hub.follow(listener, topic)

    async def next(self) -> AsyncIterator[Frame]:
        """Wait for a message, and return the frames it means to this client. Raises ListeningEnded."""
        return self._take(await self.listener.next())

    async def _take(self, message: Any) -> AsyncIterator[Frame]:
        try:
            if message is not None:
                for frame in self._frames_of(message):
                    yield frame
                return
        except Missed:
            self.listener.fall_behind()
            return
        async for frame in self._backlog():
            yield frame

    def _frames_of(self, message: Any) -> Iterator[Frame]:
        """Return what is new in a message. Raises Missed if something before it is missing."""
        raise NotImplementedError

    def _backlog(self) -> AsyncIterator[Frame]:
        """Return all that the client lacks, from the database."""
        raise NotImplementedError


class EventFeed(Feed[SentEvent | Delta, EventsTopic]):
    """The events of a conversation after the step `after`, and streaming text: all of each answer, piece by piece.

    `present`: the conversation's last step when the client connected. Texts up to there come with their events alone.
    """

    def __init__(self, hub: Hub, listener: Listener, conversation: int, after: int, present: int) -> None:
        super().__init__(hub, listener, EventsTopic(conversation))
        self._conversation, self._at = conversation, after
        self._known = KnownDrafts(present)

    def _frames_of(self, message: EventsMessage) -> Iterator[SentEvent | Delta]:
        if message.after > self._at:
            raise Missed
        if message.seq < self._at:  # the client has the events in it
            if message.deltas:
                raise Missed  # text of drafts that may have ended since, or grown while the client read
            return
        yield from self._unseen(message.events)
        yield from filter(None, map(self._known.take, message.deltas))
        self._at = message.seq  # beyond its last event, if steps without events follow

    async def _backlog(self) -> AsyncIterator[SentEvent | Delta]:
        reader = EventReader(self._conversation, self._at)
        deltas: list[Delta] = []
        while reader.more:
            events, deltas = await read(_read_next, reader)
            for one in self._unseen(events):
                yield one
        self._at = reader.at
        for new in filter(None, map(self._known.take, deltas)):
            yield new

    def _unseen(self, events: list[SentEvent]) -> Iterator[SentEvent | Delta]:
        """Return the events that the client does not have. All events of a step come together.

        Before an event that brings a whole answer comes what the client lacks of its streaming text.
        """
        had = self._at
        for one in events:
            if one.seq > had:
                self._at = one.seq
                if one.answer and (rest := self._known.complete(one.prompt, *one.answer, one.seq)):
                    yield rest
                if one.type in TERMINAL:
                    self._known.forget(one.prompt)
                yield one


def _read_next(reader: EventReader) -> tuple[list[SentEvent], list[Delta]]:
    """Return the next events and, after the last of them, the drafts. In this order: a draft ends with a later step."""
    events = reader.read()
    drafts = {} if reader.more else Growth().read({reader.conversation})
    deltas = drafts.get(reader.conversation, [])
    reader.more = reader.more or any(delta.seq > reader.at for delta in deltas)  # these follow unread steps
    return events, deltas


class PageFeed(Feed[str, PageTopic]):
    """The HTML that brings a conversation's page, rendered at the step `after`, to the present."""

    def __init__(self, hub: Hub, listener: Listener, conversation: int, after: int) -> None:
        super().__init__(hub, listener, PageTopic(conversation))
        self._conversation, self._at = conversation, after
        self._listed: ListedConversation | None = None
        self._refresh: int | None = None

    def refresh(self, seq: int) -> None:
        """Read again from `seq`, where the page says it is; 0 means that it needs everything it shows."""
        self._refresh = seq
        self.listener.fall_behind()

    def _frames_of(self, message: PageMessage) -> Iterator[str]:
        if message.seq < self._at:
            return  # it was rendered before the client read
        if message.after > self._at or self._listed not in (message.listed_before, message.listed):
            raise Missed
        self._at, self._listed = message.seq, message.listed
        if message.html:
            yield message.html

    async def _backlog(self) -> AsyncIterator[str]:
        if self._refresh is not None:
            self._at, self._refresh = self._refresh, None
        self._listed, html, self._at = await read(_read_page, self._conversation, self._at)
        if html:
            yield html


def _read_page(conversation: int, after: int) -> tuple[ListedConversation | None, str, int]:
    """Return the state of the conversation, what a page at the step `after` lacks, and the step that it is then at."""
    from conversations.pages.chat.live import catch_up

    listed = current_listing(conversation)  # first, so that what is read next is as new or newer
    return listed, *catch_up(conversation, after)


class PersonFeed(Feed[str, PersonTopic]):
    """What one user follows: the list of conversations, as HTML, or the approvals, as JSON."""

    def __init__(self, hub: Hub, listener: Listener, kind: type[PersonTopic]) -> None:
        super().__init__(hub, listener, kind(listener.entry.user))

    def _frames_of(self, message: list[str]) -> Iterator[str]:
        yield from message

    async def _backlog(self) -> AsyncIterator[str]:
        self.topic.begin()
        yield await read(self.topic.catch_up)


def text_of(frame: SentEvent | Delta | str) -> str:
    """Return the text that a socket sends for this frame."""
    if isinstance(frame, SentEvent):
        return frame.text
    return frame.event() if isinstance(frame, Delta) else frame
