"""What one person may take of this process, with all their sockets and streams together."""

from __future__ import annotations

import time
from collections import Counter, deque

from django.conf import settings

REFRESHES_MOST, REFRESHES_SECONDS = 100, 10.0
"""How often in so many seconds all pages of a person may ask for what is read for one of them alone."""


class TooMany(Exception):
    """This person has as many sockets and streams open, or asks as often, as one may."""


class Shares:
    """Who has how many sockets and streams open, and how often they asked."""

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()
        self._refreshed: dict[int, deque[float]] = {}

    def expect_room(self, person: int) -> None:
        """Raises TooMany where this person has AGENTSITE_STREAMS of them open."""
        if self._open[person] >= settings.AGENTSITE_STREAMS:
            raise TooMany

    def enter(self, person: int) -> None:
        """One more is open. Raises TooMany."""
        self.expect_room(person)
        self._open[person] += 1

    def leave(self, person: int) -> None:
        """One of them has gone."""
        self._open[person] -= 1
        if not self._open[person]:
            del self._open[person]
            self._refreshed.pop(person, None)

    def refresh(self, person: int) -> None:
        """A page asks for what is read for it alone. Raises TooMany."""
        now = time.monotonic()
        asked = self._refreshed.setdefault(person, deque(maxlen=REFRESHES_MOST))
        if len(asked) == REFRESHES_MOST and now - asked[0] < REFRESHES_SECONDS:
            raise TooMany
        asked.append(now)


shares = Shares()
