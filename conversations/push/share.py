"""Limits on what one user may take of this process, for all their sockets and streams together."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

REFRESHES_MOST, REFRESHES_SECONDS = 100, 10.0
"""How often all pages of a user may ask for a refresh, in how many seconds. A refresh is read for one page alone."""


class TooMany(Exception):
    """The user has too many sockets and streams open, or asks too often."""


class Shares:
    """How many sockets and streams each user has open, and how often they asked for a refresh."""

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()
        self._refreshed: dict[int, deque[float]] = {}

    def raise_if_full(self, person: int) -> None:
        """Raise TooMany if the user already has AGENTSITE_STREAMS of them open."""
        if self._open[person] >= settings.AGENTSITE_STREAMS:
            raise TooMany

    def enter(self, person: int) -> None:
        """Count one more. Raises TooMany."""
        self.raise_if_full(person)
        self._open[person] += 1

    def leave(self, person: int) -> None:
        """Count one less."""
        self._open[person] -= 1
        if not self._open[person]:
            del self._open[person]
            self._refreshed.pop(person, None)

    @contextmanager
    def held(self, person: int) -> Iterator[None]:
        """Count one more until the block ends, for what must not begin without room for it. Raises TooMany."""
        self.enter(person)
        try:
            yield
        finally:
            self.leave(person)

    def refresh(self, person: int) -> None:
        """Count a refresh. Raises TooMany."""
        now = time.monotonic()
        asked = self._refreshed.setdefault(person, deque(maxlen=REFRESHES_MOST))
        if len(asked) == REFRESHES_MOST and now - asked[0] < REFRESHES_SECONDS:
            raise TooMany
        asked.append(now)


shares = Shares()
