"""Standing: how far a person and each of their keys are from their limits under /v1.

It is what the database said at the last look, and what was counted here since then. So within a process no request too
many is ever admitted, and of other processes it lacks at most what they did since that look.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

from agents.passthrough.errors import Refused
from conversations.accounts.counts import Counts
from conversations.usage import quotas
from conversations.usage.passthrough import Level, Place, read_levels, room_at
from conversations.usage.totals import conversation_tokens


class Limits(NamedTuple):
    """The limits of a key or a person. 0 means no limit."""

    requests_a_minute: int = 0
    requests_a_day: int = 0
    tokens_a_day: int = 0


PERSON = 0
"""In place of a key's id: all keys of the person together."""
MODELS_MOST = 20
"""Models of a person that are counted by name within a minute before they have answered: each is a row in a table."""
MESSAGES = {
    "minute": "{whose} sent {used:,} requests within this minute, and the limit is {most:,}. Wait for the next one.",
    "requests": "{whose} sent {used:,} requests in the last 24 hours, and the limit is {most:,}. Try again later.",
    "tokens": "{whose} used {used:,} tokens in the last 24 hours, and the limit is {most:,}. Try again later.",
}


class Standing:
    """Of one person. Whoever calls `place`, `check` or `add` holds the lock of the counts."""

    def __init__(self, user: int) -> None:
        self.user = user
        self._limits = Limits()
        self._levels: defaultdict[int, Level] = defaultdict(Level)
        self._room_at: dict[tuple[int, str], float] = {}  # when a limit of a day will have room again
        self._minute, self._models = 0, set[str]()
        self._day = False  # whether any limit of a day was ever asked about

    def place(self, key: int, model: str, *, exists: bool) -> Place:
        """Return where to count what this key does now.

        Beyond MODELS_MOST in a minute, models of which nobody knows whether they exist are counted without their names.
        """
        minute = int(time.time()) // 60
        if minute != self._minute:
            self._minute, self._models = minute, set()
        if exists or len(self._models) < MODELS_MOST:
            self._models.add(model)
        return Place(self.user, key, model if model in self._models else "", minute)

    def check(self, key: int, limits: Limits) -> None:
        """Raise Refused if this key, or the person, may not send another request now."""
        now = time.time()
        for who, most in ((key, limits), (PERSON, self._limits)):
            level = self._levels[who]
            if level.minute == int(now) // 60 and 0 < most.requests_a_minute <= level.in_minute:
                raise self._refused("minute", who, level.in_minute, most.requests_a_minute, 60 - now % 60)
            for counted, used, limit in _of_day(level, most):
                if 0 < limit <= used:
                    seconds = self._room_at.get((who, counted), 0) - now
                    raise self._refused(counted, who, used, limit, seconds)

    def add(self, place: Place, requests: int, tokens: int) -> None:
        """Add what was counted here."""
        for who in (place.key, PERSON):
            self._levels[who].add(place.minute, requests, tokens)

    def look(self, key: int, limits: Limits, counts: Counts) -> None:
        """Read from the database what was used. Call it in a database thread."""
        own = quotas.limits(self.user)
        person = Limits(own.requests_a_minute or 0, own.requests_a_day or 0, own.tokens_a_day or 0)
        self._day = self._day or any((*limits[1:], *person[1:]))
        with counts.settled:
            minute = int(time.time()) // 60
            levels = defaultdict(Level, read_levels(self.user, minute, day=self._day))
            person_level = Level(minute, tokens=conversation_tokens(self.user) if person.tokens_a_day else 0)
            for level in levels.values():
                person_level.in_minute += level.in_minute
                person_level.requests += level.requests
                person_level.tokens += level.tokens
            levels[PERSON] = person_level
            with counts.lock:
                self._limits, self._levels = person, levels
                for place, counted in counts.of(self.user):
                    self.add(place, counted.requests, counted.tokens)
                used = [(who, most, replace(levels[who])) for who, most in ((key, limits), (PERSON, person))]
        for who, most, level in used:
            for name, total, limit in _of_day(level, most):
                if 0 < limit <= total:
                    room = room_at(self.user, who or None, name, total - limit + 1)
                    self._room_at[who, name] = room.timestamp()

    def _refused(self, counted: str, who: int, used: int, most: int, seconds: float) -> Refused:
        whose = "You" if who == PERSON else "This key"
        return Refused(
            429,
            "rate_limit_exceeded" if counted == "minute" else "quota_exceeded",
            MESSAGES[counted].format(whose=whose, used=used, most=most),
            retry_after=max(1, math.ceil(seconds)),
        )


def _of_day(level: Level, limits: Limits) -> tuple[tuple[str, int, int], ...]:
    """Return what is limited within 24 hours: its name, how much was used, and the limit."""
    return (
        ("requests", level.requests, limits.requests_a_day),
        ("tokens", level.tokens, limits.tokens_a_day),
    )
