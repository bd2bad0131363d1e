"""Where the reader of a chat is while an answer streams, is stopped, or becomes the recorded one: nothing jumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

STREAM = "".join(f"Sentence number {n} of a slow answer.\n\n" for n in range(1, 61))
TURNS: dict[str, list[dict[str, Any]]] = {"Tell me slowly.": [{"text": STREAM, "pause_seconds": 0.05}]}
STREAM_MS = 30_000.0

RECORDER = """
addEventListener("DOMContentLoaded", () => {
  const pane = document.querySelector(".scroll"), turns = document.getElementById("turns");
  if (!turns) return;
  const watched = window.watched = { sixth: [], scrolled: [], below: [] };
  const look = () => {
    requestAnimationFrame(look);
    const sixth = [...turns.querySelectorAll("p")].find((one) => one.textContent.includes("number 6 of"));
    if (sixth) watched.sixth.push(Math.round(sixth.getBoundingClientRect().top));
    watched.scrolled.push(pane.scrollTop);
    watched.below.push(Math.round(pane.scrollHeight - pane.scrollTop - pane.clientHeight));
  };
  look();
});
"""
"""Looks at every frame: where the sixth paragraph is, how far the page is scrolled, and how much there is below."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("scrolling"), TURNS) as site:
        yield site


@pytest.fixture
def streaming(away: Page, site: Site) -> Page:
    """A page that an answer has filled, and that goes on."""
    away.add_init_script(RECORDER)
    say(away, site, "Tell me slowly.")
    expect(away.get_by_text("Sentence number 25 of")).to_be_attached(timeout=STREAM_MS)
    return away


def watched_from_now(page: Page) -> None:
    page.evaluate("() => { for (const name in watched) watched[name] = []; }")


def comes_to_its_end(page: Page, stopped: bool) -> dict[str, list[int]]:
    """What is seen until the recorded answer stands in place of the draft."""
    if stopped:
        page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-send]")).to_be_visible(timeout=STREAM_MS)
    expect(page.locator(".growing")).to_have_count(0)
    seen: dict[str, list[int]] = page.evaluate("watched")
    return seen


@pytest.mark.parametrize("stopped", [True, False])
def test_whoever_reads_further_up_is_left_alone(streaming: Page, stopped: bool) -> None:
    streaming.locator(".scroll").evaluate("(pane) => { pane.scrollTop = 150; }")
    watched_from_now(streaming)
    seen = comes_to_its_end(streaming, stopped)
    assert len(set(seen["sixth"])) == 1
    assert set(seen["scrolled"]) == {150}
    assert max(seen["below"]) > 60


@pytest.mark.parametrize("stopped", [True, False])
def test_whoever_reads_the_end_stays_there_and_never_goes_back(streaming: Page, stopped: bool) -> None:
    watched_from_now(streaming)
    seen = comes_to_its_end(streaming, stopped)
    assert max(seen["below"]) < 60
    assert seen["scrolled"] == sorted(seen["scrolled"])
    assert seen["scrolled"][-1] > seen["scrolled"][0]


def test_whoever_scrolls_up_a_little_is_not_pulled_back(streaming: Page) -> None:
    """The wheel moves a page by a few lines, and the next piece of the answer comes before it moves again."""
    streaming.locator(".scroll").hover()
    watched_from_now(streaming)
    for number in (28, 31, 34):
        streaming.mouse.wheel(0, -20)
        expect(streaming.get_by_text(f"Sentence number {number} of")).to_be_attached(timeout=STREAM_MS)
    seen = streaming.evaluate("watched")
    moved = seen["scrolled"][seen["scrolled"].index(max(seen["scrolled"])) :]
    assert moved == sorted(moved, reverse=True)
    expect(streaming.locator("#below")).to_be_visible()
    streaming.locator("#below").click()
    watched_from_now(streaming)
    assert max(comes_to_its_end(streaming, stopped=True)["below"]) < 60
