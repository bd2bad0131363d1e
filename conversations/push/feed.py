"""Feeds: what one client gets of a topic. Each message once and in order, and the database where one is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, TypeVar

from conversations.database.threads import read
from conversations.push.event_reader import TERMINAL, EventReader, SentEvent
from conversations.push.growth import Delta, Growth, KnownDrafts, MissingText
from conversations.push.hub import Hub, Listener
from conversations.push.list_state import ListedConversation, current_listing
from conversations.push.topics import (
    ApprovalsTopic,
    ConversationTopic,
    EventsTopic,
    ListTopic,
    PageTopic,
    Topic,
    any_approval_changed,
    read_list,
)

Frame = TypeVar("Frame", SentEvent | Delta, str)
Followed = TypeVar("Followed", bound=Topic)
FollowedConversation = TypeVar("FollowedConversation", bound=ConversationTopic)


class Feed(Generic[Frame, Followed]):
    """What one client is sent. The numbers of its topic's messages show which were lost, repeated or out of order."""

    def __init__(self, hub: Hub, listener: Listener, topic: Followed) -> None:
        self.hub, self.listener, self._topic = hub, listener, topic

    async def open(self) -> AsyncIterator[Frame]:
        """Follow the topic, and send what happened before."""
        self._topic = await self.hub.follow(self.listener, self._topic)  # the one shared by all followers
        async for frame in self.catch_up():
            yield frame

    async def take(self, message: dict[str, Any]) -> AsyncIterator[Frame]:
        """Return what a message of the topic means to this client."""
        number = message["number"]
        if number <= self.listener.seen:
            return  # received already, read when the client caught up, or from an earlier topic of this name
        missed = number > self.listener.seen + 1
        if not missed:
            self.listener.seen = number
            try:
                for frame in self._frames_of(message):
                    yield frame
            except MissingText:
                missed = True
        if missed:
            async for frame in self.catch_up():
                yield frame

    async def catch_up(self) -> AsyncIterator[Frame]:
        """Send all that the client lacks, from the database; messages up to now are then skipped."""
        await self.hub.rejoin(self.listener)
        self.listener.seen = self._topic.number  # before reading: what is read has at least that
        async for frame in self._backlog():
            yield frame

    async def pulse(self) -> AsyncIterator[Frame]:
        """Catch up if the topic is ahead of the client."""
        if self.listener.seen < self._topic.number:
            async for frame in self.catch_up():
                yield frame

    def _frames_of(self, message: dict[str, Any]) -> Iterator[Frame]:
        raise NotImplementedError

    def _backlog(self) -> AsyncIterator[Frame]:
        raise NotImplementedError


class ConversationFeed(Feed[Frame, FollowedConversation]):
    """What one client gets of a conversation. It has everything up to the step `after`."""

    def __init__(self, hub: Hub, listener: Listener, topic: FollowedConversation, after: int) -> None:
        super().__init__(hub, listener, topic)
        self._conversation, self._at = topic.conversation, after

    def _messages_follow(self, seq: int, begun: bool) -> bool:
        """Whether messages will bring everything after `seq`, up to which the client has caught up.

        Not if another client has meanwhile begun the topic at a later step. If the topic had `begun` before this client
        read, it began at a step that was read then, or that does not exist any more.
        """
        return self.hub.tailer.begin(self._topic, seq) <= seq or begun


class EventFeed(ConversationFeed[SentEvent | Delta, EventsTopic]):
    """The events of a conversation, and streaming text."""

    def __init__(self, hub: Hub, listener: Listener, conversation: int, after: int) -> None:
        super().__init__(hub, listener, EventsTopic(conversation), after)
        self._known = KnownDrafts()

    def _frames_of(self, message: dict[str, Any]) -> Iterator[SentEvent | Delta]:
        if message["seq"] < self._at:  # the client has the events in it
            if message["deltas"]:
                raise MissingText  # text of drafts that may have ended since, or grown while the client caught up
            return
        yield from self._unseen(message["events"])
        for delta in message["deltas"]:
            if new := self._known.take(delta):
                yield new

    async def _backlog(self) -> AsyncIterator[SentEvent | Delta]:
        reader = EventReader(self._conversation, self._at)
        complete = False
        while not complete:
            begun = self._topic.begun
            events, deltas = await read(_read_next, reader)
            # Before yielding: the receiver may be slow, and meanwhile another could begin the topic at a later step.
            complete = not reader.more and self._messages_follow(reader.at, begun)
            for one in self._unseen(events):
                yield one
        self._at = reader.at
        for delta in deltas:
            if new := self._known.take(delta):
                yield new

    def _unseen(self, events: list[SentEvent]) -> Iterator[SentEvent]:
        """Return the events that the client does not have. All events of a step come together."""
        had = self._at
        for one in events:
            if one.seq > had:
                self._at = one.seq
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


class PageFeed(ConversationFeed[str, PageTopic]):
    """The HTML that brings a conversation's page from where it was rendered to the present."""

    def __init__(self, hub: Hub, listener: Listener, conversation: int, after: int) -> None:
        super().__init__(hub, listener, PageTopic(conversation), after)

    async def refresh(self, seq: int) -> AsyncIterator[str]:
        """Catch up from `seq`, where the page says it is; 0 means that it needs everything it shows."""
        self._at = seq
        async for frame in self.catch_up():
            yield frame

    def _frames_of(self, message: dict[str, Any]) -> Iterator[str]:
        if message["seq"] >= self._at:  # otherwise it was rendered before the client caught up
            self._at = message["seq"]
            yield message["html"]

    async def _backlog(self) -> AsyncIterator[str]:
        complete = False
        while not complete:
            begun = self._topic.begun
            listed, html, self._at = await read(_read_page, self._conversation, self._at)
            same = self._topic.begin_with(listed)
            complete = self._messages_follow(self._at, begun) and (same or begun)
            if html:
                yield html


def _read_page(conversation: int, after: int) -> tuple[ListedConversation | None, str, int]:
    """Return the state of the conversation, what a page at the step `after` lacks, and the step that it is then at."""
    from conversations.pages.chat.live import catch_up

    listed = current_listing(conversation)  # first, so that what is read next is as new or newer
    return listed, *catch_up(conversation, after)


class ListFeed(Feed[str, ListTopic]):
    """A user's list of conversations, as HTML."""

    def __init__(self, hub: Hub, listener: Listener) -> None:
        super().__init__(hub, listener, ListTopic(listener.entry.user))

    def _frames_of(self, message: dict[str, Any]) -> Iterator[str]:
        yield message["html"]

    async def _backlog(self) -> AsyncIterator[str]:
        self._topic.begin()
        state, html = await read(read_list, self.listener.entry.user)
        self._topic.begin_with(state)
        yield html


class ApprovalsFeed(Feed[str, ApprovalsTopic]):
    """The approvals shown to a user who decides, as JSON."""

    def __init__(self, hub: Hub, listener: Listener) -> None:
        super().__init__(hub, listener, ApprovalsTopic(listener.entry.user))

    def _frames_of(self, message: dict[str, Any]) -> Iterator[str]:
        yield from message["texts"]

    async def _backlog(self) -> AsyncIterator[str]:
        self._topic.begin()
        yield await read(any_approval_changed, self.listener.entry.user)


def text_of(frame: SentEvent | Delta | str) -> str:
    """Return the text that a socket sends for this frame."""
    if isinstance(frame, SentEvent):
        return frame.text
    return frame.event() if isinstance(frame, Delta) else frame
