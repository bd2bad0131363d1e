"""Printing, in a real browser: what stands on paper, of the print view and of the chat page itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

RUN, SAID = "Look around, then say the day.", "Two files, Friday."


@pytest.fixture
def talk(page: Page, site: Site) -> str:
    """A conversation with two commands that were approved; its address."""
    address = say(page, site, RUN)
    for command in ("echo two files", "echo it is Friday"):
        card = page.locator(".ask", has_text=command)
        card.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text(SAID)).to_be_visible()
    return address


def sheets(page: Page) -> int:
    """How many pages of paper this page takes."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=True)))


def seen(page: Page) -> str:
    """What can be read on paper."""
    page.emulate_media(media="print")
    return page.locator("body").inner_text()


def test_the_menu_leads_to_a_document(page: Page, site: Site, talk: str) -> None:
    """Its button prints; on paper there is neither button nor link, and all that was said, done and decided."""
    page.get_by_label("Conversation menu").click()
    page.get_by_role("link", name="Print").click()
    page.wait_for_url(f"{talk}print/")
    page.evaluate("window.print = () => document.body.append('The printer was asked.')")
    page.get_by_role("button", name="Print").click()
    expect(page.get_by_text("The printer was asked.")).to_be_visible()
    text = seen(page)
    for words in (RUN, "I will look.", "echo two files", "echo it is Friday", "Approved by ann", SAID, "Agentsite"):
        assert words in text
    for words in ("Back to the conversation", "Full page", "Type your next message", "View steps"):
        assert words not in text
    assert page.locator("button:visible, a:visible").count() == 0
    assert sheets(page) == 1


def test_a_document_is_light_and_axe_finds_nothing(page: Page, site: Site, talk: str) -> None:
    """Also where the browser prefers dark."""
    finds_nothing(page, f"{talk}print/")
    page.emulate_media(color_scheme="dark", media="screen")
    expect(page.locator(".document")).to_have_css("background-color", "rgb(255, 255, 255)")


def test_the_chat_itself_prints_without_its_frame(page: Page, site: Site, talk: str) -> None:
    """Light, with what was decided open, and without anything to press."""
    page.goto(talk)
    page.emulate_media(color_scheme="dark")
    text = seen(page)
    for words in (RUN, "I will look.", "echo two files", "Approved by you", SAID):
        assert words in text
    for words in ("New conversation", "Type your next message", "View steps", "Copy"):
        assert words not in text
    assert page.locator(".cmd:visible").count() == 2
    assert page.locator("button:visible, input:visible, textarea:visible").count() == 0
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    assert sheets(page) == 1


def test_nothing_is_wider_than_the_paper(page: Page, site: Site) -> None:
    """A table of thirteen columns with an address of hundreds of letters, and a widget with another."""
    address = say(page, site, "Show a wide table.")
    expect(page.get_by_text("That was the table.")).to_be_visible()
    page.goto(f"{address}print/")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 657, "height": 900})  # what A4 has between its margins
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('main *')].map(each => each.getBoundingClientRect().right))"
        )
        <= 657
    )
