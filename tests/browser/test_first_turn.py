"""The whole way in a real browser: say something, decide in the admin, read the answer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

pytestmark = pytest.mark.browser


def say(page: Page, site: Site, text: str) -> str:
    """Start a conversation; returns its address."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    return page.url.partition("#")[0]


def reload_until(page: Page, address: str, text: str) -> None:
    """The page tells more when it is loaded again."""
    for _ in range(200):
        page.goto(address)
        if page.get_by_text(text).count():
            return
        page.wait_for_timeout(100)
    expect(page.get_by_text(text)).to_be_visible()


def waiting(page: Page, site: Site, command: str) -> None:
    """Open the newest approval of this command in the admin: other tests may have left older ones."""
    page.goto(f"{site.url}/admin/conversations/approval/")
    page.get_by_role("row", name=re.compile(re.escape(command))).last.get_by_role("link").first.click()
    expect(page.get_by_text(command, exact=True).first).to_be_visible()


def test_two_gates_in_one_turn_are_approved_in_the_admin(page: Page, site: Site) -> None:
    """Text and a proposal, a pause, approval, and the same again, then the summary: one turn (S99)."""
    address = say(page, site, "Look around, then say the day.")
    for command in ("echo two files", "echo it is Friday"):
        reload_until(page, address, command)
        waiting(page, site, command)
        page.get_by_role("button", name=re.compile("^Approve")).click()
        expect(page.get_by_text("Approved by you")).to_be_visible()
        reload_until(page, address, "Approved by")
    reload_until(page, address, "Two files, Friday.")
    expect(page.get_by_text("I will look.")).to_be_visible()
    expect(page.get_by_text("Now the day.")).to_be_visible()


def test_a_rejection_with_its_reason_reaches_the_model(page: Page, site: Site) -> None:
    """Nothing runs, the reason stands in the chat, and the model goes on without it (S35)."""
    address = say(page, site, "Tidy up.")
    reload_until(page, address, "rm -rf notes")
    waiting(page, site, "rm -rf notes")
    page.get_by_role("link", name="Reject…").click()
    page.get_by_label("Reason").fill("Keep the notes.")
    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.get_by_text("Rejected by you")).to_be_visible()
    reload_until(page, address, "I left the notes where they are.")
    expect(page.get_by_text(re.compile("Keep the notes.")).first).to_be_visible()
