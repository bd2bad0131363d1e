"""A long answer with everything in it, while it streams: what is finished stays where it is, and is drawn once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.everything import END, EVERYTHING, everything
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

SIZE = 100_000
TEXT = everything(SIZE // len(EVERYTHING) + 1)
TURNS: dict[str, list[dict[str, Any]]] = {"Say everything.": [{"text": TEXT, "pause_seconds": 0.002}]}
STREAM_MS = 150_000.0
"""How long the answer may take on a busy machine."""

RECORDER = """
addEventListener("DOMContentLoaded", () => {
  const turns = document.getElementById("turns");
  if (!turns) return;
  const seen = window.seen = { frames: 0, moved: [], again: [], behind: 0, before: [], after: null };
  const places = new Map(), elements = new Map(), states = new Map(), pane = document.querySelector(".scroll");
  const top = (one) => one.getBoundingClientRect().top;
  const source = (one) => one.querySelector("img")?.getAttribute("src") || "";
  const blocks = (within) => [...within.querySelectorAll("h1, h2, h3, p, .table-wrap, .diagram, .formula")].map(
    (one) => [one.className || one.localName, source(one), Math.round(top(one) - top(within))]
  );
  const changes = (piece) => {
    const was = states.get(piece.id), shown = [...piece.querySelectorAll("figure.diagram, .own, .not-shown")];
    states.set(piece.id, shown.map((one) => one.className).join());
    return was !== states.get(piece.id);
  };
  const look = () => {
    requestAnimationFrame(look);
    const growing = turns.querySelector(".growing"), recorded = turns.querySelector(".turn .prose:not(.growing)");
    if (recorded && !seen.after) seen.after = blocks(recorded);
    if (!growing) return;
    seen.frames += 1;
    seen.behind = Math.max(seen.behind, pane.scrollHeight - pane.scrollTop - pane.clientHeight);
    let below = false; // a picture that has just come, or is not there
    for (const piece of [...growing.children].slice(0, -2)) {
      const at = top(piece) - top(growing), was = places.get(piece.id);
      if (elements.has(piece.id) && elements.get(piece.id) !== piece) seen.again.push(piece.id);
      if (was !== undefined && Math.abs(was - at) > 1 && !below) seen.moved.push([piece.id, was, at]);
      below = changes(piece) || below;
      places.set(piece.id, at);
      elements.set(piece.id, piece);
    }
    seen.before = blocks(growing);
  };
  look();
});
"""
"""Looks at every frame: where each finished piece is, whether it is the same element, and what the record changes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose model has much to say."""
    with serving(tmp_path_factory.mktemp("streamed"), TURNS) as site:
        yield site


def test_what_is_finished_stays_as_it_is(away: Page, site: Site) -> None:
    """Only what comes after a picture moves, once, when it takes the place of its source; the end is followed.

    When the answer is recorded, everything is where it was, and no picture is asked for again.
    """
    page = away  # one diagram is broken and one image is not there, of which the console tells
    assert len(TEXT) > SIZE
    asked: Counter[str] = Counter()
    page.on("request", lambda request: asked.update([request.url] if "/diagrams/" in request.url else []))
    page.add_init_script(RECORDER)
    say(page, site, "Say everything.")
    expect(page.get_by_text(END, exact=True)).to_have_count(1, timeout=STREAM_MS)
    expect(page.locator("[data-send]")).to_be_visible(timeout=STREAM_MS)
    seen = page.evaluate("window.seen")
    assert seen["frames"] > 50
    assert seen["moved"] == []
    assert seen["again"] == []
    assert seen["behind"] < 60  # what the page takes for the end: a line more or less
    before, after = seen["before"][:-5], seen["after"]  # the last pieces were not finished
    assert len(before) > 0.7 * len(after)
    assert [(old, new) for old, new in zip(before, after, strict=False) if old != new] == []
    refused = [times for times in asked.values() if times == 2]  # once as a picture, once for the reason
    assert len(refused) < len(asked)
    assert max(asked.values()) <= 2
