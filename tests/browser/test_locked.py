"""A database that somebody else has locked: what was written stays where it was written, and is sent once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.attacks.locked import locked
from tests.browser.conftest import WAIT_MS, Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser
TEXT = "Hello there,\nthis was long to write."


@pytest.fixture(params=[True, False], ids=["scripts", "none"])
def page_of_old(
    request: pytest.FixtureRequest, browser: Browser, page: Page, context: BrowserContext, site: Site
) -> Iterator[Page]:
    """An old conversation in a window whose console may tell of failed requests, with scripts or without."""
    say(page, site, "Hello there")
    expect(page.locator("#turns").get_by_text("Hello.")).to_have_count(1)
    failing = browser.new_context(storage_state=context.storage_state(), java_script_enabled=request.param)
    failing.set_default_timeout(WAIT_MS)
    window = failing.new_page()
    window.goto(page.url)
    yield window
    failing.close()


def test_a_message_stays_in_its_field(page_of_old: Page, site: Site) -> None:
    """The lock lasts longer than the site waits (20 s). Then the same button sends it."""
    field = page_of_old.get_by_label("Message", exact=True)
    field.fill(TEXT)
    page_of_old.get_by_text("High", exact=True).click()
    with locked(Path(site.environment["AGENTSITE_DATA"]) / "data" / "agentsite.sqlite3"):
        page_of_old.get_by_role("button", name="Send").click()
        expect(page_of_old.get_by_text("so nothing was stored")).to_be_visible(timeout=2 * WAIT_MS)
    expect(field).to_have_value(TEXT)
    expect(page_of_old.get_by_label("High")).to_be_checked()
    expect(page_of_old.locator(".said")).to_have_count(1)
    page_of_old.get_by_role("button", name="Send").click()
    expect(page_of_old.locator(".said")).to_have_count(2)
    expect(page_of_old.locator(".said").last).to_have_text(re.compile("this was long to write"))
    expect(field).to_have_value("")
