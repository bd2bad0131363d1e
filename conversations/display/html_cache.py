"""The HTML cache: rendered Markdown and blocks, in this process's memory, for the next load of a page.

It is used only inside `use_html_cache`, with the number of erasures and redactions that was read with the conversation,
before its content (see `conversations.database.erasable_cache`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256

from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import get_language

from conversations.database.erasable_cache import ErasableCache
from conversations.models import Conversation

CACHE_BYTES = 32_000_000
"""The maximum size of the cache: some hundred pages of long conversations."""
ENTRY_BYTES = 1_000_000
"""The maximum size of an entry. Larger ones are rendered each time, rather than push out everything else."""
OVERHEAD_BYTES = 250
"""What an entry takes besides its HTML: the digest and its place in the dictionary."""


class HTMLCache(ErasableCache[SafeString]):
    """HTML by the digest of what it depends on."""

    def __init__(self, most: int = CACHE_BYTES, entry_most: int = ENTRY_BYTES) -> None:
        super().__init__(most, entry_most, size_of)

    def get_or_render(self, key: bytes, render: Callable[[], SafeString], removed: int) -> SafeString:
        """Return the HTML of this key, rendered if it is not cached. `removed`: see `ErasableCache.add`."""
        if (found := self.get(key)) is not None:
            return found
        html = render()
        self.add(key, html, removed)
        return html


def size_of(html: SafeString) -> int:
    """Return the bytes that an entry with this HTML takes."""
    return sys.getsizeof(html) + OVERHEAD_BYTES


html_cache = HTMLCache()
"""The cache of this process."""
_in_use: ContextVar[int | None] = ContextVar("html_cache_in_use", default=None)


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
