"""The list in a real browser: searched, renamed, archived and deleted there, and unread in the other window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser


def row(page: Page, title: str) -> Locator:
    return page.locator(".conv", has=page.get_by_text(title, exact=True))


def menu(page: Page) -> Locator:
    page.get_by_label("Conversation menu").click()
    return page.locator(".menu-box")


def answered(page: Page, site: Site, text: str) -> str:
    """A conversation with its answer; returns its address."""
    address = say(page, site, text)
    expect(page.get_by_text("Hello.")).to_be_visible()
    return address


def test_a_title_changes_in_both_windows_and_a_search_finds_it(page: Page, site: Site) -> None:
    """The field keeps the focus while what is found changes below it, and `/` leads there."""
    address = answered(page, site, "Where are the harbour books?")
    second = page.context.new_page()
    second.goto(address)
    box = menu(page)
    box.get_by_label("Title").fill("Quay ledger")
    box.get_by_role("button", name="Rename").click()
    for window in (page, second):
        expect(window.get_by_role("heading", level=1)).to_have_text("Quay ledger")
        expect(window).to_have_title("Quay ledger · Agentsite")
        expect(row(window, "Quay ledger")).to_be_visible()
    expect(box).to_be_hidden()
    expect(page.get_by_label("Conversation menu")).to_be_focused()

    page.keyboard.press("/")
    page.keyboard.type("harbour books")
    expect(page.locator(".conv")).to_have_count(1)
    expect(row(page, "Quay ledger")).to_contain_text("the harbour books?")
    expect(page.get_by_label("Search conversations")).to_be_focused()
    page.keyboard.type(" zzz")
    expect(page.get_by_text("No results.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search conversations")).not_to_be_focused()
    expect(page.get_by_text("No results.")).to_be_hidden()
    expect(row(page, "Quay ledger")).to_be_visible()


def test_what_is_archived_comes_back_by_undo_and_what_is_deleted_does_not(page: Page, site: Site) -> None:
    """What can be undone says so for some seconds; what cannot, asks before."""
    address = answered(page, site, "Keep the old charts.")
    menu(page).get_by_role("button", name="Archive").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Archived.")
    expect(row(page, "Keep the old charts.")).to_have_count(0)
    toast.get_by_role("button", name="Undo").click()
    page.wait_for_url(address)
    expect(row(page, "Keep the old charts.")).to_be_visible()

    second = page.context.new_page()
    second.goto(site.url)
    menu(page).get_by_role("link", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete this conversation?")
    page.get_by_label("Reason").fill("Of no use.")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Deleted: Keep the old charts.")).to_be_visible()
    for window in (page, second):
        expect(row(window, "Keep the old charts.")).to_have_count(0)
    assert page.request.get(address).status == 410


def test_an_answer_is_unread_until_a_window_shows_it(page: Page, site: Site) -> None:
    """A page in view that shows it never marks its own conversation; other windows mark and unmark it."""
    elsewhere = page.context.new_page()
    elsewhere.goto(f"{site.url}/new/")
    address = say(page, site, "Tell me when.")
    page.goto("about:blank")
    dot = row(elsewhere, "Tell me when.").get_by_label("unread")
    expect(dot).to_be_visible()
    page.goto(address)
    expect(page.get_by_text("Hello.")).to_be_visible()
    expect(dot).to_have_count(0)
    expect(row(page, "Tell me when.").get_by_label("unread")).to_have_count(0)


def test_a_failed_turn_is_marked_and_tried_again(page: Page, site: Site) -> None:
    """The old one stays; where nothing was finished, this is the first button."""
    say(page, site, "Fail at once.")
    again = page.get_by_role("button", name="Ask again")
    expect(again).to_have_class(re.compile("primary"))
    again.click()
    expect(page.locator(".exchange")).to_have_count(2)
    expect(page.get_by_text("This turn failed")).to_have_count(2)
    expect(page.get_by_role("button", name="Ask again")).to_have_count(1)


def test_an_answer_is_asked_again_by_keys_alone(page: Page, site: Site) -> None:
    """The earlier answer folds where the page is open, opens by a key, and the field has the focus."""
    answered(page, site, "Say it once more.")
    page.get_by_role("button", name="Ask again").focus()
    page.keyboard.press("Enter")
    folded = page.locator("details.earlier")
    expect(folded.locator("> summary")).to_contain_text("An earlier answer")
    expect(folded.get_by_text("Hello.")).to_be_hidden()
    expect(page.get_by_text("Asked again")).to_be_visible()
    expect(page.get_by_label("Message")).to_be_focused()
    expect(page.get_by_role("button", name="Ask again")).to_have_count(1)
    folded.locator("> summary").focus()
    page.keyboard.press("Enter")
    expect(folded.get_by_text("Hello.")).to_be_visible()
    finds_nothing(page)


def test_everybody_can_use_it(page: Page, site: Site) -> None:
    """The menu, its refusal, the page that asks before deleting, what was found, and what is archived."""
    address = answered(page, site, "An accessible harbour.")
    box = menu(page)
    finds_nothing(page)
    box.get_by_label("Title").fill(" ")
    box.get_by_role("button", name="Rename").click()
    expect(box.get_by_role("alert")).to_contain_text("Enter a title.")
    finds_nothing(page)
    finds_nothing(page, f"{address}usage/")
    finds_nothing(page, f"{address}delete/")
    page.goto(address)
    menu(page).get_by_role("button", name="Archive").click()
    expect(page.locator(".toast")).to_be_visible()
    finds_nothing(page, f"{site.url}/?archived=1")
    finds_nothing(page, f"{site.url}/?q=harbour")
    finds_nothing(page, f"{site.url}/?q=no-such-word")
    say(page, site, "Fail at once.")
    expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    finds_nothing(page)


def test_the_menu_closes_by_escape_and_by_a_click_elsewhere(page: Page, site: Site) -> None:
    answered(page, site, "Open and close.")
    box = menu(page)
    expect(box).to_be_visible()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(menu(page)).to_be_visible()
    page.get_by_text("Hello.").click()
    expect(box).to_be_hidden()
