"""Following a turn until it has an answer, waits for a person, or has taken too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.db.models import Min

from conversations.api.errors import RequestRefused
from conversations.context.outcome import Outcome, outcome, words_of
from conversations.context.transcript import Transcript
from conversations.database.threads import read
from conversations.models import ApiKey, Prompt, Step
from conversations.push.access import Pass
from conversations.push.event_reader import TERMINAL, SentEvent
from conversations.push.feed import EventFeed
from conversations.push.growth import Delta
from conversations.push.hub import Hub
from conversations.push.listener import Listener

QUIET_SECONDS = 15.0
"""Silence after which a stream has a sign of life: proxies close what says nothing."""
MOST_SECONDS = 600.0
"""The longest that a request waits for a turn, without what it waits for people. Clients wait as long by default."""
TOO_LONG = "The turn goes on, and has no answer yet. Ask for it again with metadata.prompt, which is {prompt}."
ASKED = "approval"
"""The name of the paragraph that says what the turn waits for."""


@dataclass(frozen=True)
class Followed:
    """A turn, and who follows it. `first`: its first step. `site`: the address at which they reach the site."""

    prompt: Prompt
    entry: Pass
    first: int
    site: str

    @classmethod
    def of(cls, prompt: Prompt, key: ApiKey, site: str) -> Followed:
        """Return the turn as its key's owner follows it."""
        steps = Step.objects.filter(conversation=prompt.conversation_id, prompt=prompt)
        first: int = steps.aggregate(first=Min("seq"))["first"] or 1
        return cls(prompt, Pass(key.user_id, key=key.pk, conversation=prompt.conversation_id), first, site)


async def follow(turn: Followed, transcript: Transcript, wait: float) -> AsyncIterator[str | Outcome]:
    """Yield each new piece of text, "" after a while without any, and at last how the turn stands.

    It ends with the turn, or when that waits for a person, for whom it waits `wait` seconds in all. Where an answer of
    a given form is waited for, what it waits for is told only if nobody decides in time: it would spoil the form.
    Raises TooMany, ListeningEnded, and RequestRefused for a turn that takes too long or was deleted.
    """
    listener = Listener(turn.entry)
    hub = Hub.enter(listener)
    try:
        feed = EventFeed(hub, listener, turn.prompt.conversation_id, turn.first - 1, 0)
        patience, silence = _Patience(wait), _Silence()
        async for frame in _frames(turn, feed, patience):
            if frame is None:
                yield silence.broken_by("")
                continue
            piece = transcript.delta(frame) if isinstance(frame, Delta) else transcript.event(frame)
            if piece or silence.is_long():
                yield silence.broken_by(piece)
            if frame.type in TERMINAL:
                break
            if frame.type == "prompt.resumed":
                transcript.take_back(ASKED)
                patience.for_the_turn()
            elif frame.type == "prompt.paused":
                now = await read(outcome, turn.prompt.pk, turn.site)
                if now.approval and frame.seq == now.paused_at:  # else it slept, or has gone on since
                    if not transcript.formed:
                        yield transcript.say(ASKED, words_of(now.approval))
                    if not patience.for_the_person():
                        break
        stands = await read(outcome, turn.prompt.pk, turn.site)
        if stands.approval and transcript.formed:
            yield transcript.say(ASKED, words_of(stands.approval))
        yield stands
    finally:
        await hub.leave(listener)


async def _frames(turn: Followed, feed: EventFeed, patience: _Patience) -> AsyncIterator[SentEvent | Delta | None]:
    """Yield the frames of the turn, and None after a while without any, until nobody decides in time."""
    while True:
        try:
            frames = await asyncio.wait_for(feed.next(), patience.next_look())
        except TimeoutError:
            if not patience.is_over():
                yield None
                continue
            if patience.for_people:
                return
            raise RequestRefused(504, "turn_not_finished", TOO_LONG.format(prompt=turn.prompt.pk)) from None
        async for frame in frames:
            feed.listener.raise_if_ended()
            if frame.prompt == turn.prompt.pk:
                yield frame


class _Silence:
    """How long a client has heard nothing. Much happens in a turn that it is not told of, e.g. what sub-agents say."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self._since = self._now()

    def is_long(self) -> bool:
        """Whether it is time for a sign of life."""
        return self._now() - self._since >= QUIET_SECONDS

    def broken_by(self, piece: str) -> str:
        """Return what the client hears now."""
        self._since = self._now()
        return piece


class _Patience:
    """How much longer a request waits: for the turn, and for people while it has asked them."""

    def __init__(self, wait: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._until = self._now() + MOST_SECONDS
        self._for_people_left = wait
        self.for_people = False

    def for_the_person(self) -> bool:
        """Wait for people from now on. Returns whether there is time for that."""
        self.for_people = True
        self._until = self._now() + self._for_people_left
        return not self.is_over()

    def for_the_turn(self) -> None:
        """Wait for the turn again, and for people, later, as long as is left of their time."""
        if self.for_people:
            self._for_people_left = self._until - self._now()
        self.for_people = False
        self._until = self._now() + MOST_SECONDS

    def next_look(self) -> float:
        """Return the seconds until the next sign of life, or until there is no more time."""
        return max(0.0, min(QUIET_SECONDS, self._until - self._now()))

    def is_over(self) -> bool:
        """Whether there is no more time."""
        return self._now() >= self._until
