"""The HTML cache: rendered Markdown and blocks, in this process's memory, for the next load of a page.

HTML is found by a digest of everything it depends on, so it never has to be corrected, and no other copy of the text
is kept. It is used only inside `use_html_cache`, with the number of erasures and redactions that was read with the
conversation, before its content: if any process has removed something since, the cache is emptied first.

Neither `functools.lru_cache` nor Django's local-memory cache would do: both count entries instead of bytes, and the
first keeps the text as its key.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from threading import Lock, Timer

from django.db import connection
from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import get_language

from conversations.display.diff import diff
from conversations.models import Conversation

CACHE_BYTES = 32_000_000
"""The maximum size of the cache: some hundred pages of long conversations."""
ENTRY_BYTES = 1_000_000
"""The maximum size of an entry. Larger ones are rendered each time, rather than push out everything else."""
OVERHEAD_BYTES = 250
"""What an entry takes besides its HTML: the digest and its place in the dictionary."""
IDLE_SECONDS = 600.0
"""How long an unused cache stays. Without use, nothing would notice an erasure."""
_REMOVED = """
    SELECT (SELECT count(*) FROM conversations_erasure) * 1000000000 + (SELECT count(*) FROM conversations_redaction)
"""
"""How many erasures and redactions there are, as one number that grows with every commit of either: erasures are never
deleted, and redactions, fewer than a billion, only with the erasure of their conversation.

The greatest ids would not do: on PostgreSQL a lower id may be committed later.
"""


class HTMLCache:
    """HTML by the digest of what it depends on. The least recently used goes first. Safe to use from many threads.

    `size` is in bytes, and never above `most`.
    """

    def __init__(self, most: int = CACHE_BYTES, entry_most: int = ENTRY_BYTES) -> None:
        self._most, self._entry_most = most, entry_most
        self._lock = Lock()
        self._entries: OrderedDict[bytes, SafeString] = OrderedDict()
        self._removed: int | None = None
        self._used_at = 0.0
        self._timer: Timer | None = None
        self.size = 0

    def keep_up(self, removed: int) -> None:
        """Empty the cache if anything was erased or redacted since the last call; an older number is ignored."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._removed is None or removed > self._removed:
                self._empty()
                self._removed = removed

    def get_or_render(self, key: bytes, render: Callable[[], SafeString], removed: int) -> SafeString:
        """Return the HTML of this key, rendered if it is not cached.

        `removed`: the number from before its content was read. If the cache has another number by now, the content may
        have been removed meanwhile, and its HTML is not kept.
        """
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return found
        html = render()
        with self._lock:
            if removed == self._removed and key not in self._entries and size_of(html) <= self._entry_most:
                self._add(key, html)
        return html

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._empty()
            self._removed = None  # what is being rendered now is not kept

    def _add(self, key: bytes, html: SafeString) -> None:
        self._entries[key] = html
        self.size += size_of(html)
        while self.size > self._most:
            self.size -= size_of(self._entries.popitem(last=False)[1])
        if self._timer is None:
            self._clear_in(IDLE_SECONDS)

    def _empty(self) -> None:
        self._entries.clear()
        self.size = 0
        diff.cache_clear()

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


def size_of(html: SafeString) -> int:
    """Return the bytes that an entry with this HTML takes."""
    return sys.getsizeof(html) + OVERHEAD_BYTES


html_cache = HTMLCache()
"""The cache of this process."""
_in_use: ContextVar[int | None] = ContextVar("html_cache_in_use", default=None)


def annotate_removed(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Read how much was erased and redacted together with a conversation, for `use_html_cache`."""
    return conversations.annotate(removed=RawSQL(_REMOVED, (), BigIntegerField()))  # noqa: S611 - a constant


@contextmanager
def use_html_cache(conversation: Conversation) -> Iterator[None]:
    """Use the cache for what is rendered in this block, from content that was read after this conversation.

    Without the number of `annotate_removed` everything is rendered.
    """
    removed: int | None = getattr(conversation, "removed", None)
    if removed is not None:
        html_cache.keep_up(removed)
    before = _in_use.set(removed)
    try:
        yield
    finally:
        _in_use.reset(before)


def empty_if_removed() -> None:
    """Empty the cache if any process has erased or redacted something since it was last used."""
    if not (html_cache.size or diff.cache_info().currsize):
        return
    with connection.cursor() as cursor:
        cursor.execute(_REMOVED)
        html_cache.keep_up(cursor.fetchall()[0][0])


def cached_html(render: Callable[[], SafeString], *depends_on: object) -> SafeString:
    """Return this HTML from the cache, rendered the first time; outside `use_html_cache` it is always rendered.

    `depends_on`: everything that the HTML is made of, as values whose `repr` tells them apart. The language and the
    time zone, which any template may use, are added here.
    """
    removed = _in_use.get()
    if removed is None:
        return render()
    everything = repr((*depends_on, get_language(), get_current_timezone_name()))
    key = sha256(everything.encode("utf-8", "surrogatepass")).digest()
    return html_cache.get_or_render(key, render, removed)
