"""The HTML cache: it returns what would be rendered, stays within its bound, and keeps nothing that was removed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st

from conversations.database import erasable_cache
from conversations.display.html_cache import HTMLCache, size_of
from tests.agentsite.processes import wait_for

NOTHING = 0
BOUND, ENTRY = 1_200, 800
TEXTS = st.text(max_size=5) | st.integers(0, 900).map(lambda length: "\u00e9" * length)
ERASURES = st.just(0) | st.integers(0, 2)


class Renderer:
    """Renders a text as HTML, and counts how often."""

    def __init__(self, text: str = "text") -> None:
        self.text, self.count = text, 0

    def __call__(self) -> SafeString:
        self.count += 1
        return SafeString(f"<p>{self.text}</p>")


def of(cache: HTMLCache, renderer: Renderer, removed: int = NOTHING) -> SafeString:
    """Return the HTML of this renderer's text from the cache."""
    return cache.get_or_render(renderer.text.encode(), renderer, removed)


@given(st.lists(st.tuples(TEXTS, ERASURES), max_size=40))
def test_it_returns_what_is_rendered_and_stays_within_its_bound(asked: list[tuple[str, int]]) -> None:
    cache, most = HTMLCache(BOUND, ENTRY), NOTHING
    for text, removed in asked:
        cache.keep_up(removed)
        before, renderer = cache.size, Renderer(text)
        assert of(cache, renderer, removed) == f"<p>{text}</p>"
        assert 0 <= cache.size <= BOUND
        if removed > most:
            assert renderer.count == 1, "rendered before something was removed"
        if size_of(SafeString(f"<p>{text}</p>")) > ENTRY or removed < most:
            assert cache.size == before, "kept what is too large, or was read before something was removed"
        most = max(most, removed)


def test_what_was_used_last_stays_longest() -> None:
    renderers = [Renderer(f"{n}" * 100) for n in range(10)]
    each = size_of(renderers[0]())
    cache = HTMLCache(most=3 * each, entry_most=each)
    cache.keep_up(NOTHING)
    first, *others = renderers
    for other in others:
        of(cache, first)
        of(cache, other)
    assert cache.size == 3 * each
    assert first.count == 2, "rendered here to know its size, then once"
    again = [other.count for other in others]
    for other in others[-2:]:
        of(cache, other)
    assert [other.count for other in others] == again
    of(cache, others[0])
    assert others[0].count == 2


def test_what_is_removed_while_it_is_rendered_is_not_kept() -> None:
    """As when another page notices an erasure while this one is rendered."""
    cache, renderer = HTMLCache(), Renderer()
    cache.keep_up(NOTHING)

    def interrupted() -> SafeString:
        cache.keep_up(1)
        return renderer()

    cache.get_or_render(b"text", interrupted, NOTHING)
    assert cache.size == 0
    cache.keep_up(NOTHING)  # that page is still being made
    of(cache, renderer, NOTHING)
    assert cache.size == 0
    of(cache, renderer, 1)
    of(cache, renderer, 1)
    assert renderer.count == 3


def test_what_two_threads_render_at_once_is_kept_once() -> None:
    cache, renderer = HTMLCache(), Renderer()
    cache.keep_up(NOTHING)
    html = cache.get_or_render(renderer.text.encode(), lambda: of(cache, renderer), NOTHING)
    assert cache.size == size_of(html)


def test_many_threads_use_it_at_once() -> None:
    cache, texts = HTMLCache(BOUND, ENTRY), [f"{n}" * (n * 7 % 100) for n in range(60)]

    def load(erasures: int) -> bool:
        cache.keep_up(erasures)
        return all(of(cache, Renderer(text), erasures) == f"<p>{text}</p>" for text in texts)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(load, [n // 20 for n in range(200)]))
    assert 0 < cache.size <= BOUND
    cache.keep_up(100)
    assert cache.size == 0, "the sizes do not add up"
    kept = [text for text in texts[:3] if of(cache, Renderer(text), 100)]
    assert cache.size == sum(size_of(SafeString(f"<p>{text}</p>")) for text in kept)


def test_an_unused_cache_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice an erasure otherwise."""
    monkeypatch.setattr(erasable_cache, "IDLE_SECONDS", 0.1)
    cache = HTMLCache()
    cache.keep_up(NOTHING)
    of(cache, Renderer())
    assert cache.size > 0
    wait_for(lambda: cache.size == 0)
    of(cache, Renderer())
    wait_for(lambda: cache.size == 0)
