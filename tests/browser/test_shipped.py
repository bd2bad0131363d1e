"""The two workflows that ship, as a newcomer runs them: with the demo model, from the selector to the result."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A fresh site, as `make run` starts it."""
    with serving(tmp_path_factory.mktemp("newcomer"), None, "ann") as site:
        yield site


def approve(page: Page, words: str) -> None:
    """Approve the card with these words, on the page of the run."""
    card = page.locator("article.ask").filter(has_text=words)
    card.get_by_role("button", name=re.compile("^Approve")).click()
    expect(card).to_have_count(0)


def approve_in_admin(context: BrowserContext, site: Site) -> None:
    """Approve what waits, in the administration."""
    admin = context.new_page()
    admin.goto(f"{site.url}/admin/conversations/approval/")
    admin.get_by_role("row").last.get_by_role("link").first.click()
    admin.get_by_role("button", name=re.compile("^Approve")).click()
    expect(admin.get_by_text("Approved by you")).to_be_visible()
    admin.close()


def test_a_project_is_created_and_refactored_in_one_chat(page: Page, context: BrowserContext, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("Hello.")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_role("button", name="Send")).to_be_visible()

    page.get_by_role("link", name="Workflows", exact=True).click()
    page.get_by_role("link", name=re.compile("Create a project")).first.click()
    page.get_by_label("Name").fill("Corner Shop")
    page.get_by_label("Workspace").select_option(index=1)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator("article.ask")).to_contain_text("corner-shop")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    approve_in_admin(context, site)
    approve(page, "unittest")
    expect(page.locator(".came").last).to_contain_text("They passed.")

    message = page.get_by_label("Message")
    message.fill("/component.refactor path=corner-shop/corner_shop/receipt.py")
    message.press("Enter")
    approve(page, "Carry out this plan?")
    approve(page, "receipt.py")
    approve(page, "unittest")
    expect(page.get_by_role("group", name="Changes")).to_contain_text("1 file changed")
    expect(page.locator(".came").last).to_contain_text("They passed.")
    finds_nothing(page)
