"""Topics: the events of a conversation, its page, a user's list, a user's approvals.

A topic exists while it has followers. Its `look` runs in the tailer's thread, and makes each message once for all of
them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.template.loader import render_to_string

from conversations.approvals.permissions import shown_to
from conversations.models import GateState, Output, Redaction
from conversations.models import Step as StepRow
from conversations.push.event_reader import EventReader, SentEvent
from conversations.push.growth import Delta
from conversations.push.list_state import (
    ListedConversation,
    ListState,
    Notices,
    current_notices,
    decides_for_others,
    owned_digests,
)

if TYPE_CHECKING:
    from conversations.pages.chat.live import LivePage

Body = dict[str, Any]
"""The content of a topic's message, besides its number."""
HOLD_SECONDS = 0.25
"""Minimum interval between two updates of a user's topic, which many running turns change all the time."""
ALL_SECONDS = 10.0
"""Interval between two reads of all gates. A gate that was erased, or that a user may no longer see, is in no
conversation with new steps.
"""


@dataclass(frozen=True)
class ChangedConversation:
    """A conversation that may have changed. `drafted`: it has streaming text."""

    owner: int
    seq: int
    drafted: bool
    listed: ListedConversation


@dataclass(frozen=True)
class Look:
    """What the tailer read in one go."""

    conversations: Mapping[int, ChangedConversation]
    appended: frozenset[int] = frozenset()
    """The conversations with steps since the last read."""
    everything: bool = False
    grown: Mapping[int, list[Delta]] = field(default_factory=dict)
    relisted: frozenset[tuple[int, int]] = frozenset()
    """Conversations, each with its owner, that were renamed, archived, seen or erased: no step records that."""
    notices: Notices = (0, False)
    owned: Mapping[int, str] = field(default_factory=dict)
    """By user whose list is followed: the digest of their conversations. Only if `everything` is read."""
    waiting: int | None = None
    """How many approvals wait, if they were counted this time."""


class Topic:
    """Something that clients follow. `number` counts its messages, so that followers notice when one is missing.

    It starts at the clock's time. A message of an earlier topic of the same name, published while its last follower
    left and another came, is then older than all messages of this one.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.number = time.monotonic_ns()
        self.followers = 0

    @property
    def begun(self) -> bool:
        """Whether a follower has everything from before its first message."""
        raise NotImplementedError

    def look(self, look: Look) -> Body | None:
        """Return the message for the followers; None if there is nothing to send."""
        raise NotImplementedError


class ConversationTopic(Topic):
    """A topic of a conversation, from some step on. It starts when `begin` names the step."""

    def __init__(self, group: str, conversation: int) -> None:
        super().__init__(group)
        self.conversation: int = conversation
        self.since: int | None = None

    @property
    def begun(self) -> bool:
        """Whether the step is known from which on the topic sends everything."""
        return self.since is not None

    def begin(self, seq: int) -> int:
        """Begin after `seq`, up to which a follower has everything. Only the first call sets the step.

        Returns the step after which the topic sends everything. A follower that is behind it must read on.
        """
        if self.since is None:
            self.start(seq)
            self.since = seq
        return self.since

    def start(self, seq: int) -> None:
        """Send only what comes after `seq`."""
        raise NotImplementedError


class EventsTopic(ConversationTopic):
    """The events of a conversation, for programs."""

    def __init__(self, conversation: int) -> None:
        super().__init__(f"events-{conversation}", conversation)

    def start(self, seq: int) -> None:
        """Send only the events after `seq`."""
        self._reader = EventReader(self.conversation, seq)

    def look(self, look: Look) -> Body | None:
        """Return new events, and what was added to drafts."""
        moved = look.conversations.get(self.conversation)
        if moved is None:
            return None
        events: list[SentEvent] = []
        deltas = look.grown.get(self.conversation, [])
        until = deltas[0].seq if deltas else moved.seq  # a later step may end a draft: it is sent later
        self._reader.more = until > self._reader.at
        while self._reader.more:
            events += self._reader.read(until)
        return {"events": events, "deltas": deltas, "seq": self._reader.at} if events or deltas else None


class PageTopic(ConversationTopic):
    """A conversation's page, as HTML for browsers."""

    def __init__(self, conversation: int) -> None:
        super().__init__(f"page-{conversation}", conversation)
        self._page: LivePage | None = None
        self._listed: ListedConversation | None = None

    def start(self, seq: int) -> None:
        """Send only what changed after the step `seq`."""
        self._seq = seq

    def begin_with(self, listed: ListedConversation | None) -> bool:
        """Begin with this state, which a follower read before all else. Only the first call sets it.

        Returns whether this is the topic's state. A follower that read another state must read on.
        """
        if self._listed is None:
            self._listed = listed
        return self._listed == listed

    def look(self, look: Look) -> Body | None:
        """Return what changed on the page, and what was added to its drafts."""
        moved = look.conversations.get(self.conversation)
        if moved is None:
            return None
        if self._page is None:
            from conversations.pages.chat.live import LivePage

            self._page = LivePage(self.conversation)
        html = ""
        before, self._listed = self._listed or moved.listed, moved.listed
        if moved.seq > self._seq or moved.listed != before:
            html = self._page.changed(self._recorded(moved.seq) | self._redacted(before, moved.listed))
            self._seq = moved.seq
        if moved.drafted:
            html += self._page.drafted()
        return {"html": html, "seq": self._seq} if html else None

    def _recorded(self, seq: int) -> frozenset[int]:
        """Return the turns with steps since the last update."""
        new = StepRow.objects.filter(conversation=self.conversation, seq__gt=self._seq, seq__lte=seq)
        return frozenset(new.values_list("prompt", flat=True))

    def _redacted(self, before: ListedConversation, now: ListedConversation) -> frozenset[int]:
        """Return the turns with steps redacted since then: no step records a redaction."""
        if now.redaction == before.redaction:
            return frozenset()
        new = Redaction.objects.filter(conversation=self.conversation, pk__gt=before.redaction)
        steps = StepRow.objects.filter(conversation=self.conversation, seq__in=new.values("seq"))
        return frozenset(steps.values_list("prompt", flat=True))


class PersonTopic(Topic):
    """A topic of one user. A message is not repeated, unless a follower has caught up since it was sent."""

    def __init__(self, group: str, person: int) -> None:
        super().__init__(group)
        self.person = person
        self._readers = 0
        self._due, self._looked_at = False, 0.0

    @property
    def begun(self) -> bool:
        """Whether a follower has caught up."""
        return self._readers > 0

    def begin(self) -> None:
        """Count a follower that is about to catch up from the database.

        What it reads may be outdated by the next update and equal to the last message, which is then repeated.
        """
        self._readers += 1

    def look(self, look: Look) -> Body | None:
        """Return what changed since the last message, if something was recorded and HOLD_SECONDS have passed."""
        self._due = self._is_affected(look) or self._due
        if not self._due or time.monotonic() - self._looked_at < HOLD_SECONDS:
            return None
        readers = self._readers  # before reading: a client that begins now is served by the next update
        self._due, self._looked_at = False, time.monotonic()
        return self._message(readers)

    def _is_affected(self, look: Look) -> bool:
        raise NotImplementedError

    def _message(self, readers: int) -> Body | None:
        raise NotImplementedError


class ListTopic(PersonTopic):
    """A user's list of conversations, and the notices to everybody, as HTML."""

    def __init__(self, person: int) -> None:
        super().__init__(f"list-{person}", person)
        self._said = (0, "")  # to how many readers, and what
        self._counted: tuple[int, int] | None = (
            None  # to how many readers, and how many; None: a list has said it since
        )
        self._state: ListState | None = None

    @property
    def counts(self) -> bool:
        """Whether its count of approvals is everybody's: it may change though no conversation of this list does."""
        return self._state is not None and self._state.everybody

    def begin_with(self, state: ListState) -> None:
        """Begin with this state: what a follower has read is of this state or newer."""
        if self._state is None:
            self._state = state

    def look(self, look: Look) -> Body | None:
        """Return the list if it changed, or only the number of everybody's approvals if nothing else did."""
        return super().look(look) or self._count(look)

    def _is_affected(self, look: Look) -> bool:
        theirs = (pk for pk in look.appended if look.conversations[pk].owner == self.person)
        relisted = any(owner == self.person for _, owner in look.relisted)
        if any(theirs) or relisted:
            return True
        if self._state is None:
            return look.everything
        if self._state.notices != look.notices:
            return True
        return look.everything and self._state.owned != look.owned.get(self.person, "")

    def _message(self, readers: int) -> Body | None:
        before, self._state = self._said, None  # if reading fails: unknown until a follower has caught up
        self._state, html = read_list(self.person)
        self._said, self._counted = (readers, html), None
        return {"html": html} if self._said != before else None

    def _count(self, look: Look) -> Body | None:
        readers = self._readers
        if look.waiting is None or not self.counts or self._counted == (readers, look.waiting):
            return None
        self._counted = readers, look.waiting
        context = {"sidebar": {"approvals": look.waiting}, "oob": True}
        return {"html": render_to_string("conversations/approvals.html", context)}


def read_list(person: int) -> tuple[ListState, str]:
    """Return the state at which a user's list was read, and its HTML, which is as new or newer."""
    from conversations.pages.chat.live import list_html

    notices = current_notices()
    state = ListState(owned_digests([person]).get(person, ""), notices, decides_for_others(person))
    return state, list_html(person, notices[1])  # by a single check: the disk may be full for a moment


class ApprovalsTopic(PersonTopic):
    """The gates shown to a user who decides: each that was opened or decided, and how many wait."""

    def __init__(self, person: int) -> None:
        super().__init__(f"approvals-{person}", person)
        self._waiting: dict[int, frozenset[int]] = {}  # conversation -> gates
        self._moved: set[int] | None = None  # conversations to look at; None for all
        self._all_at = 0.0
        self._said_to = 0

    def _is_affected(self, look: Look) -> bool:
        if look.everything or time.monotonic() - self._all_at >= ALL_SECONDS:
            self._moved = None
            return True
        relisted = {pk for pk, _ in look.relisted}  # including erased ones
        if self._moved is not None:
            self._moved |= look.appended | relisted
        return bool(look.appended or relisted) or not self._said_to

    def _message(self, readers: int) -> Body | None:
        moved, self._moved = self._moved, set()
        if moved is None:
            self._all_at = time.monotonic()
        shown = _gates_shown_to(self.person)
        of_moved = shown if moved is None else shown.filter(conversation__in=moved)
        pending: dict[int, set[int]] = {}
        for conversation, pk in of_moved.filter(gate=GateState.PENDING).values_list("conversation", "pk"):
            pending.setdefault(conversation, set()).add(pk)
        kept = {} if moved is None else {pk: gates for pk, gates in self._waiting.items() if pk not in moved}
        was = frozenset[int]().union(*(gates for pk, gates in self._waiting.items() if pk not in kept))
        waits = frozenset[int]().union(*pending.values())
        self._waiting = kept | {pk: frozenset(gates) for pk, gates in pending.items()}
        count = sum(map(len, self._waiting.values()))
        before, self._said_to = self._said_to, readers
        if before != readers:
            return {"texts": [approval_changed(None, "", count)]}
        changed = dict.fromkeys(waits - was, GateState.PENDING.value)
        changed |= dict.fromkeys(was - waits, "")  # erased, unless found below
        changed |= dict(shown.filter(pk__in=was - waits).values_list("pk", "gate"))
        texts = [approval_changed(pk, state, count) for pk, state in sorted(changed.items())]
        return {"texts": texts} if texts else None


def _gates_shown_to(person: int) -> QuerySet[Output]:
    return shown_to(get_user_model().objects.get(pk=person), Output.objects.gates())


def approval_changed(pk: int | None, state: str, waiting: int) -> str:
    """Return the message for people who decide, as JSON: the gate, its state ("" if erased), how many wait now.

    Without an id, any gate may have changed.
    """
    return json.dumps({"type": "approval.changed", "id": pk, "state": state, "waiting": waiting})


def any_approval_changed(person: int) -> str:
    """Return the message that any approval may have changed."""
    return approval_changed(None, "", _gates_shown_to(person).filter(gate=GateState.PENDING).count())
