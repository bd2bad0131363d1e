"""A message that is sent while a turn runs: the page keeps it, says so, and sends it once the turn has ended (S79)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_composer import NOTES
from tests.browser.test_first_turn import say
from tests.browser.test_live_page import Line

pytestmark = pytest.mark.browser


def keep(page: Page, text: str) -> None:
    """Send this message while a turn runs or waits."""
    expect(page.locator("[data-stop]")).to_be_visible()
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#later")).to_contain_text("will be sent when this turn has ended")
    expect(page.locator("#problem .bad")).to_have_count(0)


def approve(page: Page) -> None:
    page.locator(".ask").first.get_by_role("button", name=re.compile("^Approve")).click()


def is_sent(page: Page, *messages: str) -> None:
    """The conversation comes to have just these messages."""
    expect(page.locator(".said .typed")).to_have_text(list(messages))


def test_it_is_sent_with_its_files_when_the_turn_has_ended(page: Page, site: Site) -> None:
    """Also while the turn waits for an approval; the field is empty then."""
    say(page, site, "Ask and go on.")
    expect(page.locator(".ask")).to_be_visible()
    page.get_by_label("Attach files").set_input_files(NOTES)
    keep(page, "And then?")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    approve(page)
    is_sent(page, "Ask and go on.", "And then?")
    expect(page.locator(".said .chip")).to_contain_text("notes.txt")
    expect(page.get_by_text("Hello.", exact=True)).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("#later")).to_be_hidden()
    expect(page.locator("#chosen")).to_be_hidden()


def test_what_is_changed_or_taken_back_stays(page: Page, site: Site) -> None:
    """By typing, by another file, or by the button; the button beside Stop keeps it as Enter does."""
    say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.get_by_label("Message").press_sequentially(" Or not?")
    expect(page.locator("#later")).to_be_hidden()
    page.get_by_role("button", name="Send when this turn has ended").click()
    expect(page.locator("#later")).to_be_visible()
    page.get_by_label("Attach files").set_input_files(NOTES)
    expect(page.locator("#later")).to_be_hidden()
    keep(page, "And then?")
    page.get_by_role("button", name="Don\u2019t send").click()
    expect(page.locator("#later")).to_be_hidden()
    approve(page)
    expect(page.locator("[data-send]")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("And then?")
    page.reload()
    is_sent(page, "Ask and go on.")


@pytest.mark.parametrize(("asked", "says"), [("Ask and fail.", "failed"), ("Ask and go on.", "was stopped")])
def test_after_a_turn_that_failed_or_was_stopped_it_stays(page: Page, site: Site, asked: str, says: str) -> None:
    """Its sender did not expect that end: the page says so, and sends nothing by itself."""
    say(page, site, asked)
    keep(page, "And then?")
    if says == "failed":
        approve(page)
    else:
        page.get_by_role("button", name="Stop").click()
    expect(page.locator("#later")).to_contain_text(f"This turn {says}, so your message was not sent.")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    page.reload()
    is_sent(page, asked)
    page.get_by_label("Message").press("Enter")
    is_sent(page, asked, "And then?")


def test_it_outlives_a_reload_and_a_lost_connection(page: Page, context: BrowserContext, site: Site) -> None:
    """The turn ends while nobody hears of it here; back, the page sends it, once."""
    line = Line(page)
    address = say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.reload()
    expect(page.locator("#later")).to_contain_text("will be sent")
    expect(page.locator("#offline")).to_be_hidden()
    line.cut()
    expect(page.locator("#offline")).to_be_visible()
    other = context.new_page()
    other.goto(address)
    approve(other)
    expect(other.get_by_text("It went on.")).to_be_visible()
    expect(other.locator("[data-send]")).to_be_visible()
    is_sent(other, "Ask and go on.")
    line.down = False
    page.get_by_role("button", name="Try now").click()
    is_sent(page, "Ask and go on.", "And then?")
    is_sent(other, "Ask and go on.", "And then?")


def test_what_failed_while_the_page_was_away_sends_nothing(page: Page, context: BrowserContext, site: Site) -> None:
    """Who comes back reads that it failed, and finds the message in the field."""
    address = say(page, site, "Ask and fail.")
    keep(page, "And then?")
    page.goto("about:blank")
    other = context.new_page()
    other.goto(address)
    approve(other)
    expect(other.get_by_text("This turn failed")).to_be_visible()
    page.goto(address)
    expect(page.locator("#later")).to_contain_text("This turn failed, so your message was not sent.")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    is_sent(page, "Ask and fail.")


def test_files_do_not_outlive_a_reload_and_the_page_says_so(page: Page, site: Site) -> None:
    """A message without its files is not the message."""
    say(page, site, "Ask and go on.")
    page.get_by_label("Attach files").set_input_files(NOTES)
    keep(page, "And then?")
    page.goto(f"{site.url}/account/")
    page.go_back()
    expect(page.locator("#later")).to_contain_text("attach your files again")
    expect(page.get_by_label("Message")).to_have_value("And then?")


def test_two_windows_send_each_message_once(page: Page, context: BrowserContext, site: Site) -> None:
    """One comes first, and the other waits for its turn; a copy of a window sends nothing of its own."""
    address = say(page, site, "Ask and go on.")
    keep(page, "One more.")
    copy = context.new_page()
    copy.goto(address)
    stored = page.evaluate("JSON.stringify(sessionStorage)")
    copy.evaluate("(stored) => Object.assign(sessionStorage, JSON.parse(stored))", stored)
    copy.reload()
    expect(copy.locator("#later")).to_be_visible()
    other = context.new_page()
    other.goto(address)
    keep(other, "Another.")
    approve(page)
    for window in (page, copy, other):
        expect(window.locator(".said .typed")).to_have_count(3)
        expect(window.get_by_label("Message")).to_have_value("")
        expect(window.locator("[data-send]")).to_be_visible()
    assert sorted(page.locator(".said .typed").all_inner_texts()) == ["Another.", "Ask and go on.", "One more."]


def test_a_turn_that_began_elsewhere_keeps_it_too(page: Page, context: BrowserContext, site: Site) -> None:
    """The page had not heard of it: what the site does not take is kept as well, and not refused in red."""
    address = say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.evaluate("window.taken = take; take = () => {}")  # deaf
    other = context.new_page()
    other.goto(address)
    other.get_by_label("Message").fill("Ask and go on.")
    other.get_by_label("Message").press("Enter")
    expect(other.locator(".ask")).to_be_visible()
    page.evaluate("take = window.taken")
    page.get_by_label("Message").fill("And then?")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#later")).to_contain_text("will be sent when this turn has ended")
    expect(page.locator("#problem .bad")).to_have_count(0)
    approve(other)
    is_sent(page, "Hello there", "Ask and go on.", "And then?")
