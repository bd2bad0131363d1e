"""Caches in this process's memory for what is made of the record: bounded in bytes, and emptied by erasures.

What is kept is found by a digest of everything it depends on, so it never has to be corrected, and no other copy of the
text is kept. Whoever asks says how many erasures and redactions there were before they read the content: if any process
has removed something since, the cache is emptied first. A process that nobody asks anything looks by itself.

Neither `functools.lru_cache` nor Django's local-memory cache would do: both count entries instead of bytes, and the
first keeps the text as its key. Small functions may have an `lru_cache` if they are `erasable`: then they are emptied
together with the caches.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread, Timer
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from django.db import Error, connection, connections
from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

logger = logging.getLogger(__name__)
T = TypeVar("T")
Cached = TypeVar("Cached", bound="_lru_cache_wrapper[Any]")
Rows = TypeVar("Rows", bound=QuerySet[Any])

IDLE_SECONDS = 600.0
"""How long an unused cache stays, e.g. while the database is away."""
LOOK_SECONDS = 10.0
"""Interval between two looks of a process at what other processes have removed."""
_REMOVED = """
    SELECT (SELECT count(*) FROM conversations_erasure) * 1000000000 + (SELECT count(*) FROM conversations_redaction)
"""
"""How many erasures and redactions there are, as one number that grows with every commit of either: erasures are never
deleted, and redactions, fewer than a billion, only with the erasure of their conversation.

The greatest ids would not do: on PostgreSQL a lower id may be committed later.
"""


class ErasableCache(Generic[T]):
    """Values by the digest of what they depend on. The least recently used goes first. Safe to use from many threads.

    `most` and `entry_most` are bytes: a larger entry is not kept, rather than push out everything else. `size_of` says
    how many bytes a value takes. `size` is in bytes, and never above `most`.
    """

    def __init__(self, most: int, entry_most: int, size_of: Callable[[T], int]) -> None:
        self._most, self._entry_most, self._size_of = most, entry_most, size_of
        self._lock = Lock()
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._removed: int | None = None
        self._used_at = 0.0
        self._timer: Timer | None = None
        self.size = 0
        CACHES.add(self)

    def keep_up(self, removed: int) -> None:
        """Empty the cache if anything was erased or redacted since the last call; an older number is ignored."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._removed is None or removed > self._removed:
                self._empty()
                self._removed = removed

    def get(self, key: bytes) -> T | None:
        """Return the value of this key; None if it is not kept."""
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
            return found

    def add(self, key: bytes, value: T, removed: int) -> None:
        """Keep a value in place of what was kept under this key, unless it is too large.

        `removed`: the number from before its content was read. If the cache has another number by now, the content may
        have been removed meanwhile, and its value is not kept.
        """
        with self._lock:
            if removed != self._removed or self._size_of(value) > self._entry_most:
                return
            if (old := self._entries.pop(key, None)) is not None:
                self.size -= self._size_of(old)
            self._entries[key] = value
            self.size += self._size_of(value)
            while self.size > self._most:
                self.size -= self._size_of(self._entries.popitem(last=False)[1])
            if self._timer is None:
                self._clear_in(IDLE_SECONDS)

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._empty()
            self._removed = None  # what is being made now is not kept

    def _empty(self) -> None:
        self._entries.clear()
        self.size = 0
        for function in _FUNCTIONS:
            function.cache_clear()

    def _clear_in(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._clear_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _clear_if_idle(self) -> None:
        with self._lock:
            self._timer = None
            left = self._used_at + IDLE_SECONDS - time.monotonic()
            if left > 0:
                self._clear_in(left)
            else:
                self._empty()


CACHES: WeakSet[ErasableCache[Any]] = WeakSet()
"""All caches of this process."""
_FUNCTIONS: list[_lru_cache_wrapper[Any]] = []


def erasable(function: Cached) -> Cached:
    """Decorator for a function with an `lru_cache`, whose arguments or results hold what somebody wrote."""
    _FUNCTIONS.append(function)
    return function


def empty_if_removed() -> None:
    """Empty what is cached in this process if any process has erased or redacted something since it was last used."""
    if any(cache.size for cache in CACHES) or any(function.cache_info().currsize for function in _FUNCTIONS):
        removed = count_removed()
        for cache in CACHES:
            cache.keep_up(removed)


def keep_looking(over: Event) -> Thread:
    """Look every LOOK_SECONDS whether what is cached here must go, in a thread that ends when it is `over`."""

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            try:
                empty_if_removed()
            except Error as error:
                logger.warning("cannot look at what was erased (%s); trying again", error)
            finally:
                with suppress(Error):  # a broken connection may raise
                    connections.close_all()

    thread = Thread(target=look, name="removals", daemon=True)
    thread.start()
    return thread


def annotate_removed(rows: Rows) -> Rows:
    """Read how much was erased and redacted together with these rows, as `removed`: the number for `keep_up`."""
    annotated: Rows = rows.annotate(removed=RawSQL(_REMOVED, (), BigIntegerField()))  # noqa: S611 - a constant
    return annotated


def count_removed() -> int:
    """Return how much was erased and redacted, as one number that only grows."""
    with connection.cursor() as cursor:
        cursor.execute(_REMOVED)
        return int(cursor.fetchall()[0][0])
