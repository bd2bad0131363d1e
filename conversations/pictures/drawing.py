"""Pictures of diagrams, drawn once and kept in this process's memory."""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from conversations.database.erasable_cache import ErasableCache
from conversations.pictures.children import Busy, Children, Stopped
from conversations.pictures.mermaid import VERSION, NotDrawn
from conversations.pictures.theme import Theme

CACHE_BYTES = 32_000_000
"""The maximum size of the cache: a thousand ordinary pictures."""
ENTRY_BYTES = 2_000_000
OVERHEAD_BYTES = 400
"""What an entry takes besides its text."""
WAIT_SECONDS = 20.0
"""How long a request waits for a picture, behind others and for its own."""
STOPPED_SECONDS = 60.0
"""How long a drawing that took too long, or crashed, is not tried again: each try costs a child for seconds."""


@dataclass(frozen=True)
class Picture:
    """A picture, or the sentence why there is none. `until`: when that is to be tried again, on the monotonic clock."""

    svg: str = ""
    refused: str = ""
    until: float = math.inf


def _size_of(picture: Picture) -> int:
    return sys.getsizeof(picture.svg) + sys.getsizeof(picture.refused) + OVERHEAD_BYTES


class Pictures:
    """Pictures by their source, theme and what draws them. Safe to use from many threads."""

    def __init__(self, children: Children) -> None:
        self.cache: ErasableCache[Picture] = ErasableCache(CACHE_BYTES, ENTRY_BYTES, _size_of)
        self._children = children
        self._lock = Lock()
        self._under_way: dict[bytes, Future[str]] = {}

    def of(self, source: str, theme: Theme, removed: int) -> Picture:
        """Return the picture of a diagram, drawn unless it is kept; two who ask at once wait for the same drawing.

        `removed`: how much was erased and redacted before the source was read (see `ErasableCache`). Raises Busy.
        """
        self.cache.keep_up(removed)
        key = sha256(repr((source, theme, VERSION)).encode("utf-8", "surrogatepass")).digest()
        found = self.cache.get(key)
        if found and found.until > time.monotonic():
            return found
        drawn = self._draw(key, source, theme, removed)
        try:
            drawn.exception(WAIT_SECONDS)
        except TimeoutError as late:
            raise Busy from late
        return _picture(drawn)

    def _draw(self, key: bytes, source: str, theme: Theme, removed: int) -> Future[str]:
        with self._lock:
            if under_way := self._under_way.get(key):
                return under_way
            drawn = self._under_way[key] = self._children.draw(source, theme)

        def keep(drawn: Future[str]) -> None:
            self.cache.add(key, _picture(drawn), removed)
            with self._lock:
                del self._under_way[key]

        drawn.add_done_callback(keep)
        return drawn


def _picture(drawn: Future[str]) -> Picture:
    """Return what came of a drawing that is done."""
    try:
        return Picture(svg=drawn.result())
    except Stopped as stopped:
        return Picture(refused=str(stopped), until=time.monotonic() + STOPPED_SECONDS)
    except NotDrawn as refused:
        return Picture(refused=str(refused))


pictures = Pictures(Children())
"""The pictures of this process."""
