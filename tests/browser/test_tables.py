"""Tables break at blanks only, and scroll in boxes of their own: while they stream, and afterwards, at any width."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.nasty.whole import WIDTHS, faults
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

BROKEN = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("main :is(td, th)")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      if (texts.currentNode.parentElement.matches(".esc")) continue; // part of a word that may be wider
      const whole = cell.matches(".whole") || cell.querySelector(".whole") ? /\\S.*/g : /\\S+/g;
      for (const found of texts.currentNode.data.matchAll(whole)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, found.index);
        range.setEnd(texts.currentNode, found.index + found[0].trimEnd().length);
        const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
        if (lines.size > 1 && /^[ -~]{1,60}$/.test(found[0])) broken.push(found[0]);
      }
    }
  }
  return broken;
}"""
"""The Latin words of cells, and the cells that are figures, which stand on more than one line."""


def holds(page: Page) -> None:
    page.wait_for_load_state()  # its style sheets are there
    for name, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(BROKEN) == [], name


def test_an_answers_table(page: Page, site: Site) -> None:
    """And the same as a widget, and both in the inspector."""
    address = say(page, site, "Show a wide table.")
    growing = page.locator(".growing table")
    expect(growing).to_contain_text("1918.4 / 0")
    holds(page)
    expect(growing).to_have_count(1)  # it still streamed
    expect(page.get_by_text("That was the table.")).to_be_visible()
    expect(growing).to_have_count(0)
    holds(page)
    assert not faults(page)
    box = page.get_by_role("group", name="Table: Engine, Requests / failed")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle())
    widest = box.locator("td").evaluate_all("all => Math.max(...all.map(one => one.offsetWidth))")
    assert widest < 400  # an address breaks only where it is wider than a column may be
    page.emulate_media(media="print")  # nothing scrolls on paper
    assert page.locator(".table-wrap").evaluate_all("all => all.map(one => getComputedStyle(one).overflow)") == [
        "visible",
        "visible",
    ]
    page.emulate_media(media="screen")
    finds_nothing(page, address)
    page.locator(".used > summary").click()
    page.get_by_role("link", name="View steps").click()
    expect(page.locator(".inspector .grid").first).to_be_visible()
    holds(page)
