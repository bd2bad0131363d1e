"""A card in view: one lands at its head, which stays; Escape leaves its form; what was stopped says what that means."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

HEAD = """(card) => {
  const head = card.querySelector(".ask-head").getBoundingClientRect();
  const { top, bottom } = document.querySelector(".scroll").getBoundingClientRect();
  return head.top >= top && head.bottom <= bottom;
}"""
"""Whether the head of a card is in view, below what is fixed above it."""


def shows_its_head(card: Locator) -> None:
    expect(card).to_be_visible()
    card.page.wait_for_function(f"(card) => ({HEAD})(card)", arg=card.element_handle())


def test_one_lands_on_a_long_card_at_its_head(page: Page, site: Site) -> None:
    """When it is pushed, when the page is loaded at its end, by a link to the card; scrolled on, its head stays."""
    address = say(page, site, "A long command.")
    card = page.locator(".ask")
    shows_its_head(card)
    link = f"#{card.get_attribute('id')}"
    for there in ("#now", link):
        page.goto("about:blank")
        page.goto(address + there)
        shows_its_head(card)
        assert card.evaluate("(card) => card.getBoundingClientRect().top > 0")
    page.locator(".scroll").evaluate("(pane) => { pane.scrollTop += 700; }")
    assert card.evaluate("(card) => card.getBoundingClientRect().top < 0")
    shows_its_head(card)


def test_after_a_decision_the_next_long_card_shows_its_head(page: Page, site: Site) -> None:
    """Its end is where the last one was decided."""
    say(page, site, "Two long commands.")
    expect(page.locator(".ask")).to_have_count(2)
    last = page.locator(".ask").last
    last.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".ask")).to_have_count(1)
    expect(page.locator(".ask")).to_be_focused()
    shows_its_head(page.locator(".ask"))
    assert page.locator(".ask").evaluate("(card) => card.getBoundingClientRect().top > 0")


@pytest.mark.parametrize(("opens", "field"), [("Edit", "Command"), ("Reject…", "Reason (sent to the agent)")])
def test_escape_leaves_the_form_of_a_card(page: Page, site: Site, opens: str, field: str) -> None:
    """At once if nothing was changed; otherwise it says what a second one does, and typing on takes that back."""
    say(page, site, "Edit this.")
    card = page.locator(".ask")
    typed = card.get_by_label(field, exact=True)
    warning = card.get_by_text("Press Escape again to discard your changes.")
    card.get_by_role("link", name=opens).click()
    expect(typed).to_be_focused()
    page.keyboard.press("Escape")
    expect(typed).to_have_count(0)
    expect(card).to_be_focused()
    card.get_by_role("link", name=opens).click()
    typed.press_sequentially("More")
    page.keyboard.press("Escape")
    expect(warning).to_be_visible()
    page.keyboard.type(" and more")
    expect(warning).to_be_hidden()
    page.keyboard.press("Escape")
    expect(warning).to_be_visible()
    expect(typed).to_have_value(re.compile("More and more"))
    page.keyboard.press("Escape")
    expect(typed).to_have_count(0)
    expect(card.get_by_role("button", name=re.compile("^Approve"))).to_be_visible()


def test_what_the_site_refused_is_not_lost_by_one_escape(page: Page, site: Site) -> None:
    """The form comes back with what was typed in it: that counts as typed, too."""
    say(page, site, "Edit this.")
    card = page.locator(".ask")
    card.get_by_role("link", name="Edit").click()
    expect(card.get_by_label("Command")).to_be_focused()  # else the focus comes while the other field is filled in
    card.get_by_label("Timeout seconds").fill("9999")
    card.get_by_role("button", name="Approve as edited").click()
    expect(card.get_by_text("Enter a number from 1 to 590.")).to_be_visible()
    card.get_by_label("Timeout seconds").press("Escape")
    expect(card.get_by_text("Press Escape again")).to_be_visible()
    expect(card.get_by_label("Timeout seconds")).to_have_value("9999")


def test_a_command_that_is_stopped_says_at_once_what_that_means(page: Page, site: Site) -> None:
    """Nothing has to be opened for it."""
    say(page, site, "Sleep long.")
    page.locator(".ask").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".tail")).to_contain_text("begun")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("This was stopped while it ran: part of it may already have been done.")).to_be_visible()


def test_a_card_says_by_the_clock_when_it_expires(page: Page, site: Site) -> None:
    """Nothing counts it down."""
    say(page, site, "Ask and go on.")
    expect(page.locator(".until")).to_have_text(re.compile(r"Expires (at|tomorrow at|on .* at) \d\d:\d\d"))
    said = page.locator(".until").inner_text()
    page.evaluate("tell()")
    assert page.locator(".until").inner_text() == said
