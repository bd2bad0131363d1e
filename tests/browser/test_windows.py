"""Three windows on one turn: two on the conversation, one in the admin. What is decided in one, all of them tell."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say, waiting

pytestmark = pytest.mark.browser

SOON_MS = 5_000.0
"""What is measured is well below one second; a machine that tests is busy."""


def in_the_chat(page: Page) -> None:
    page.locator(".ask").get_by_role("button", name=re.compile("^Approve")).click()


def in_the_admin(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Approve")).first.click()


@pytest.mark.parametrize(("window", "decide"), [(0, in_the_chat), (1, in_the_chat), (2, in_the_admin)])
def test_what_is_decided_in_one_window_all_three_tell(
    page: Page, context: BrowserContext, site: Site, window: int, decide: Callable[[Page], None]
) -> None:
    """Nobody reloads anything: the pages follow the ledger (S43, S95)."""
    address = say(page, site, "Ask in three windows.")
    expect(page.locator(".ask")).to_be_visible()
    second, admin = context.new_page(), context.new_page()
    second.goto(address)
    expect(second.locator(".ask")).to_be_visible()
    waiting(admin, site, "echo in three windows")
    windows = [page, second, admin]
    windows[window].bring_to_front()
    decide(windows[window])
    for chat in (page, second):
        expect(chat.locator(".ask")).to_have_count(0, timeout=SOON_MS)
        expect(chat.get_by_text(re.compile("Approved by"))).to_be_visible(timeout=SOON_MS)
        expect(chat.get_by_text("All three told.")).to_be_visible()
        expect(chat).not_to_have_title(re.compile(r"^\("))
    expect(admin.get_by_text(re.compile("Approved by")).first).to_be_visible(timeout=SOON_MS)
