"""Topics: the events of a conversation, its page, a user's list, a user's approvals.

A topic exists while it has listeners. Its `look` runs in the tailer's thread, and makes each message once for all of
them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.template.loader import render_to_string

from conversations.approvals.permissions import count_waiting, shown_to
from conversations.models import GateState, Output, Redaction
from conversations.models import Step as StepRow
from conversations.push.event_reader import EventReader, SentEvent
from conversations.push.growth import Delta
from conversations.push.list_state import (
    ListedConversation,
    ListState,
    Notices,
    current_list_state,
)
from conversations.push.listener import Listener

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from conversations.pages.chat.live import LivePage

Message = TypeVar("Message")
HOLD_SECONDS = 0.25
"""Minimum interval between two updates of a user's topic, which many running turns change all the time."""
ALL_SECONDS = 10.0
"""Interval between two reads of all gates, and of all lists. A gate that was erased, or that a user may no longer see,
is in no conversation with new steps; and a hint of what no step records may be lost.
"""


@dataclass(frozen=True)
class ChangedConversation:
    """A conversation that may have changed. `running`: it has an active turn. `drafted`: that has streaming text."""

    owner: int
    seq: int
    seen: int
    running: bool
    drafted: bool
    listed: ListedConversation

    @property
    def state(self) -> tuple[object, ...]:
        """What changes with its steps, and with whatever else shows in a list: it was renamed, archived or seen."""
        return self.seq, self.seen, self.listed


@dataclass(frozen=True)
class Look:
    """What the tailer read in one go."""

    conversations: Mapping[int, ChangedConversation]
    changed: frozenset[int] = frozenset()
    """The conversations whose state differs from the last read."""
    everything: bool = False
    grown: Mapping[int, list[Delta]] = field(default_factory=dict)
    notices: Notices = (0, False)
    owned: Mapping[int, str] | None = None
    """By user whose list is followed: the digest of their conversations; None if it was not read this time."""
    recount: bool = False
    """Whether approvals of anybody may have changed since they were counted last."""


class Topic(Generic[Message]):
    """Something that clients follow. Two topics with the same `key` are the same."""

    def __init__(self, about: int) -> None:
        self.key = (type(self).__name__, about)
        self.listeners: set[Listener] = set()

    def look(self, look: Look) -> Message | None:
        """Return the message for the followers; None if there is nothing to send."""
        raise NotImplementedError


@dataclass(frozen=True)
class EventsMessage:
    """The events after the step `after` up to `seq`, and what was added to drafts.

    A client that is not at `after` yet lacks something, and reads from the database.
    """

    after: int
    seq: int
    events: list[SentEvent]
    deltas: list[Delta]


@dataclass(frozen=True)
class PageMessage:
    """HTML that brings a page from the step `after`, and the listing it had then, to `seq` and its listing."""

    after: int
    seq: int
    listed_before: ListedConversation
    listed: ListedConversation
    html: str


class ConversationTopic(Topic[Message]):
    """A topic of a conversation. It begins where the conversation is at its first look.

    The first message says where that is: a client that had read less by then reads again. Each other message continues
    the one before.
    """

    def __init__(self, conversation: int) -> None:
        super().__init__(conversation)
        self.conversation = conversation
        self.at: int | None = None
        """The step up to which its messages are complete; None before the first look."""

    def look(self, look: Look) -> Message | None:
        """Return what changed in the conversation."""
        moved = look.conversations.get(self.conversation)
        return self._changes(moved, look.grown.get(self.conversation, [])) if moved else None

    def _changes(self, moved: ChangedConversation, deltas: list[Delta]) -> Message | None:
        raise NotImplementedError


class EventsTopic(ConversationTopic[EventsMessage]):
    """The events of a conversation, for programs."""

    def _changes(self, moved: ChangedConversation, deltas: list[Delta]) -> EventsMessage | None:
        until = deltas[0].seq if deltas else moved.seq  # a later step may end a draft: it is sent later
        if first := self.at is None:
            self.at = until
            self._reader = EventReader(self.conversation, until)
        after, events = self.at, list[SentEvent]()
        self._reader.more = until > self._reader.at
        while self._reader.more:
            events += self._reader.read(until)
        if not (first or events or deltas):
            return None  # and `at` stays: steps without events belong to the next message, which continues this one
        self.at = self._reader.at
        return EventsMessage(after, self.at, events, deltas)


class PageTopic(ConversationTopic[PageMessage]):
    """A conversation's page, as HTML for browsers."""

    _page: LivePage
    _listed: ListedConversation

    def _changes(self, moved: ChangedConversation, deltas: list[Delta]) -> PageMessage | None:
        from conversations.pages.chat.live import LivePage

        if first := self.at is None:
            self.at, self._listed, self._page = moved.seq, moved.listed, LivePage(self.conversation)
        after, before, html = self.at, self._listed, ""
        self._listed = moved.listed
        if moved.seq > after or moved.listed != before:
            self.at = moved.seq  # also if the page cannot be rendered: its listeners are then told to read again
            html = self._page.changed(self._recorded(after, moved.seq) | self._redacted(before, moved.listed))
        if moved.drafted:
            html += self._page.drafted()
        return PageMessage(after, self.at, before, moved.listed, html) if first or html else None

    def _recorded(self, after: int, seq: int) -> frozenset[int]:
        """Return the turns with steps after this one, up to `seq`."""
        new = StepRow.objects.filter(conversation=self.conversation, seq__gt=after, seq__lte=seq)
        return frozenset(new.values_list("prompt", flat=True))

    def _redacted(self, before: ListedConversation, now: ListedConversation) -> frozenset[int]:
        """Return the turns with steps redacted since then: no step records a redaction."""
        if now.redaction == before.redaction:
            return frozenset()
        new = Redaction.objects.filter(conversation=self.conversation, pk__gt=before.redaction)
        steps = StepRow.objects.filter(conversation=self.conversation, seq__in=new.values("seq"))
        return frozenset(steps.values_list("prompt", flat=True))


class PersonTopic(Topic[list[str]]):
    """A topic of one user. Its messages are texts to send.

    A message is not repeated, unless a follower has read from the database since.
    """

    def __init__(self, person: int) -> None:
        super().__init__(person)
        self.person = person
        self._readers = 0
        self._due, self._looked_at = False, 0.0

    def begin(self) -> None:
        """Count a follower that is about to read from the database.

        What it reads may be outdated by the next update and equal to the last message, which is then repeated.
        """
        self._readers += 1

    def catch_up(self) -> str:
        """Return, from the database, what brings a follower to the present."""
        raise NotImplementedError

    def look(self, look: Look) -> list[str] | None:
        """Return what changed since the last message, if something was recorded and HOLD_SECONDS have passed."""
        if not self._readers:
            return None
        self._due = self._is_affected(look) or self._due
        if not self._due or time.monotonic() - self._looked_at < HOLD_SECONDS:
            return None
        readers = self._readers  # before reading: a client that begins now is served by the next update
        self._due, self._looked_at = False, time.monotonic()
        return self._message(readers)

    def _is_affected(self, look: Look) -> bool:
        raise NotImplementedError

    def _message(self, readers: int) -> list[str] | None:
        raise NotImplementedError


class ListTopic(PersonTopic):
    """A user's list of conversations, and the notices to everybody, as HTML."""

    def __init__(self, person: int) -> None:
        super().__init__(person)
        self._said = (0, "")  # to how many readers, and what
        self._state: ListState | None = None
        self._reader: User | None = None
        self._read_at = 0.0

    def catch_up(self) -> str:
        """Return the list. It is of the state that the topic begins with, or newer."""
        state, html = read_list(self.person)
        if self._state is None:
            self._state = state
        return html

    def look(self, look: Look) -> list[str] | None:
        """Return the list if it changed, or else only the number of approvals, if that did."""
        return super().look(look) or (self._count() if look.recount else None)

    def _count(self) -> list[str] | None:
        if self._state is None or self._state.waiting is None:
            return None
        if self._reader is None or time.monotonic() - self._read_at >= ALL_SECONDS:
            self._reader = get_user_model().objects.get(pk=self.person)  # it remembers its permissions
            self._read_at = time.monotonic()
        waiting = count_waiting(self._reader)
        if waiting == self._state.waiting:
            return None
        self._state = self._state._replace(waiting=waiting)
        return [render_to_string("conversations/approvals.html", {"sidebar": {"approvals": waiting}, "oob": True})]

    def _is_affected(self, look: Look) -> bool:
        if any(look.conversations[pk].owner == self.person for pk in look.changed):
            return True
        if self._state is None:
            return look.owned is not None
        now = self._state._replace(notices=look.notices)
        if look.owned is not None:
            now = now._replace(owned=look.owned.get(self.person, ""))
        return now != self._state

    def _message(self, readers: int) -> list[str] | None:
        before = self._said
        self._state = self._reader = None  # if reading fails: unknown until a follower has caught up
        self._state, html = read_list(self.person)
        self._said = (readers, html)
        return [html] if self._said != before else None


def read_list(person: int) -> tuple[ListState, str]:
    """Return the state at which a user's list was read, and its HTML, which is as new or newer."""
    from conversations.pages.chat.live import list_html

    state = current_list_state(person)
    return state, list_html(person, state.notices[1])  # by a single check: the disk may be full for a moment


class ApprovalsTopic(PersonTopic):
    """The gates shown to a user who decides: each that was opened or decided, and how many wait."""

    def __init__(self, person: int) -> None:
        super().__init__(person)
        self._waiting: dict[int, int] = {}  # gate -> its conversation
        self._moved: set[int] | None = None  # conversations to look at; None for all
        self._all_at = 0.0
        self._said_to = 0

    def catch_up(self) -> str:
        """Return the message that any approval may have changed."""
        waiting = _gates_shown_to(self.person).filter(gate=GateState.PENDING)
        return approval_changed(None, "", waiting.count())

    def _is_affected(self, look: Look) -> bool:
        if look.everything or time.monotonic() - self._all_at >= ALL_SECONDS:
            self._moved = None
            return True
        if self._moved is not None:
            self._moved |= look.changed
        return bool(look.changed) or not self._said_to

    def _message(self, readers: int) -> list[str] | None:
        moved, self._moved = self._moved, set()
        if moved is None:
            self._all_at = time.monotonic()
        shown = _gates_shown_to(self.person)
        of_moved = shown if moved is None else shown.filter(conversation__in=moved)
        waits = dict(of_moved.filter(gate=GateState.PENDING).values_list("pk", "conversation"))
        was = {pk for pk, conversation in self._waiting.items() if moved is None or conversation in moved}
        self._waiting = {pk: conversation for pk, conversation in self._waiting.items() if pk not in was} | waits
        count = len(self._waiting)
        before, self._said_to = self._said_to, readers
        if before != readers:
            return [approval_changed(None, "", count)]
        gone = was - waits.keys()
        changed = dict.fromkeys(waits.keys() - was, GateState.PENDING.value)
        changed |= dict.fromkeys(gone, "")  # erased, unless found below
        changed |= dict(shown.filter(pk__in=gone).values_list("pk", "gate"))
        texts = [approval_changed(pk, state, count) for pk, state in sorted(changed.items())]
        return texts or None


def _gates_shown_to(person: int) -> QuerySet[Output]:
    return shown_to(get_user_model().objects.get(pk=person), Output.objects.gates())


def approval_changed(pk: int | None, state: str, waiting: int) -> str:
    """Return the message for people who decide, as JSON: the gate, its state ("" if erased), how many wait now.

    Without an id, any gate may have changed.
    """
    return json.dumps({"type": "approval.changed", "id": pk, "state": state, "waiting": waiting})
