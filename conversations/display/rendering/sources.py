"""The sources of the diagrams in a text: a picture is drawn only of what stands there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from agents.engine.ledger import JSON
from conversations.database.erasable_cache import ErasableCache
from conversations.display.rendering.diagrams import LANGUAGE, digest, is_diagram
from conversations.display.rendering.markdown import parse
from conversations.display.rendering.place import PLACE

Sources = dict[str, str]
"""The sources of diagrams by their digest."""
CACHE_BYTES, ENTRY_BYTES = 8_000_000, 4_000_000
"""An entry has room for a text of 200,000 characters that is nothing but short diagrams: each of its pictures would
have it parsed again."""


def _size_of(sources: Sources) -> int:
    return 200 + sum(200 + 4 * len(source) for source in sources.values())


_cache: ErasableCache[Sources] = ErasableCache(CACHE_BYTES, ENTRY_BYTES, _size_of)
"""A page with twenty diagrams asks twenty times for those of the same text, which takes long to parse."""


def diagrams_in(text: str) -> list[str]:
    """Return the sources of all diagrams in a Markdown text, also in lists and quotes, as the page shows them."""
    if LANGUAGE not in text:
        return []
    fences = (token for token in parse(text, {PLACE: None}) if token.type == "fence")
    return [fence.content for fence in fences if is_diagram(fence.info)]


def find_source(name: str, texts: Iterable[str], removed: int) -> str | None:
    """Return the source of the diagram with this digest from the first of these texts that has it.

    `removed`: how much was erased and redacted before the texts were read (see `ErasableCache`).
    """
    _cache.keep_up(removed)
    for text in texts:
        key = sha256(text.encode("utf-8", "surrogatepass")).digest()
        sources = _cache.get(key)
        if sources is None:
            sources = {digest(source): source for source in diagrams_in(text)}
            _cache.add(key, sources, removed)
        if name in sources:
            return sources[name]
    return None


def strings_in(value: JSON) -> Iterator[str]:
    """Yield all strings in a JSON value that may hold a diagram; the names of fields are none."""
    if isinstance(value, str):
        if LANGUAGE in value:
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_in(each)
