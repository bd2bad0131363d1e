"""The texts of a conversation: each can be copied, and reads in the direction of its script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say
from tests.browser.turns import SCRIPTS

pytestmark = pytest.mark.browser

MESSAGE = "Speak in two scripts."


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_each_message_and_answer_can_be_copied(page: Page, context: BrowserContext, site: Site) -> None:
    """By mouse and by keyboard: the answer's Markdown, the message as it was typed; each says "Copied"."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    address = say(page, site, MESSAGE)
    expect(page.locator("[data-send]")).to_be_visible()
    page.locator(".turn .prose").hover()
    answer, message = page.get_by_label("Copy this answer"), page.get_by_label("Copy this text")
    answer.click()
    expect(answer.get_by_text("Copied")).to_be_visible()
    assert clipboard(page) == SCRIPTS
    message.focus()
    expect(message).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    expect(message.get_by_text("Copied")).to_be_visible()
    expect(page.locator("#announce")).to_have_text("Copied")
    assert clipboard(page) == MESSAGE
    expect(message.get_by_text("Copied")).to_be_hidden()
    assert page.url.partition("#")[0] == address


def direction(within: Locator) -> str:
    return str(within.evaluate("(one) => getComputedStyle(one).direction"))


def test_each_block_reads_in_the_direction_of_its_script(page: Page, site: Site) -> None:
    """Headings, paragraphs, lists, quotations and tables; code from the left; the composer and the title as typed."""
    say(page, site, MESSAGE)
    expect(page.locator("[data-send]")).to_be_visible()
    answer = page.locator(".turn .prose")
    found = {
        tag: direction(answer.locator(tag).first) for tag in ("h1", "p", "ul", "blockquote", "table", "pre", "code")
    }
    assert found == {
        "h1": "rtl", "p": "ltr", "ul": "rtl", "blockquote": "rtl", "table": "rtl", "pre": "ltr", "code": "ltr",
    }  # fmt: skip
    second = answer.locator("li", has_text="the second")
    expect(second).to_have_css("text-align", re.compile("right$"))  # beside its mark
    field = page.get_by_label("Message")
    for text, reads in (("مرحبا", "rtl"), ("Hello", "ltr")):
        field.fill(text)
        assert direction(field) == reads
        page.locator("#menu-button").click()
        page.get_by_label("Title").fill(text)
        page.get_by_role("button", name="Rename").click()
        expect(page.locator("#name")).to_have_text(text)
        assert direction(page.locator("#name")) == reads
        expect(page.locator(".conv[aria-current] .clip").first).to_have_text(text)
        assert direction(page.locator(".conv[aria-current] .clip").first) == reads


def test_a_word_of_code_is_not_broken_at_a_hyphen(page: Page, site: Site) -> None:
    """However narrow the page: an option stays whole."""
    say(page, site, MESSAGE)
    word = page.locator(".turn .prose code .w").first
    expect(word).to_have_text("--out")
    for width in range(320, 420, 7):
        page.set_viewport_size({"width": width, "height": 800})
        assert word.evaluate("(one) => one.getClientRects().length === 1 && one.offsetHeight < 30")


def test_one_can_write_at_once(page: Page, site: Site) -> None:
    """On the first page and in a new conversation the field has the focus; a page that was searched for leaves it."""
    for path in ("/", "/new/"):
        page.goto(site.url + path)
        expect(page.get_by_label("Message")).to_be_focused()
    page.goto(f"{site.url}/?q=nothing")
    expect(page.get_by_label("Message")).not_to_be_focused()


def test_a_notice_of_a_lost_connection_has_its_icon_and_goes(page: Page, site: Site) -> None:
    """Though the browser cannot fetch anything then."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.wait_for_load_state("networkidle")  # an answer to anything would say that the site is there
    page.evaluate("unsent()")
    notice = page.locator("#problem .notice")
    expect(notice).to_contain_text("could not be reached")
    for place in ("#problem", "#offline"):
        icon = page.locator(f"{place} svg")
        expect(icon.locator("use")).to_have_count(0)
        expect(icon.locator("path").first).to_be_attached()
    page.evaluate("for (const { wrapper } of sockets.values()) wrapper.reconnect()")
    expect(notice).to_have_count(0)


def test_a_failed_turn_keeps_its_mark(page: Page, site: Site) -> None:
    """Also while it is looked at; once one has asked again, the next turn has its own."""
    say(page, site, "Fail at once.")
    row = page.locator(".conv[aria-current]")
    expect(row.get_by_text("failed", exact=True)).to_be_attached()
    expect(row.locator(".mark.bad svg")).to_be_visible()
    page.reload()
    expect(row.locator(".mark.bad svg")).to_be_visible()
    page.get_by_label("Message").fill("Hello there")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_text("Hello.", exact=True)).to_be_visible()
    expect(row.locator(".mark.bad")).to_have_count(0)
    expect(row.get_by_text("failed", exact=True)).to_have_count(0)
