"""What a drain keeps in memory, instead of asking the database for it again in each round of each turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

RECENT_SECONDS = 5.0
"""How old a total of what a person uses may be. Meanwhile, what this process uses is added to it."""
MOST = 10_000
"""Values that are kept at once. When there are more, all are asked for anew."""


class Kept:
    """What one process keeps, for all of its turns. Used in the thread that owns the connection.

    `count` is that of `conversations.database.changes`, as the last record, claim or look of this process read it: once
    it differs, all `settled` values are asked for anew.
    """

    def __init__(self) -> None:
        self.count: int | None = None
        self._settled: dict[tuple[Any, ...], Any] = {}
        self._recent: dict[tuple[Any, ...], tuple[float, int]] = {}

    def see(self, count: int) -> None:
        """Note this count, read in a transaction that has been committed."""
        if count != self.count:
            self.count = count
            self._settled.clear()

    def at_hand(self, function: Callable[..., T], *args: Any) -> T:
        """Return what `settled` would, from any thread. Raises KeyError if it is not kept."""
        value: T = self._settled[function, *args]
        return value

    def settled(self, function: Callable[..., T], *args: Any) -> T:
        """Return what this function reads, which only people change, and only in tables whose changes count."""
        key = (function, *args)
        if key not in self._settled:
            _make_room(self._settled)
            self._settled[key] = function(*args)
        value: T = self._settled[key]
        return value

    def recent(self, total: Callable[[int], int], user: int) -> int:
        """Return this total of a person's, at most RECENT_SECONDS old but for what others used meanwhile."""
        read_at, value = self._recent.get((total, user), (-RECENT_SECONDS, 0))
        if (now := time.monotonic()) - read_at >= RECENT_SECONDS:
            _make_room(self._recent)
            value = total(user)
            self._recent[total, user] = (now, value)
        return value

    def add(self, total: Callable[[int], int], user: int, more: int) -> None:
        """Add what this process has used since to a total, if that is kept."""
        if kept := self._recent.get((total, user)):
            self._recent[total, user] = (kept[0], kept[1] + more)


def _make_room(values: dict[Any, Any]) -> None:
    if len(values) >= MOST:
        values.clear()
