"""Forms that the socket pushed: none has a CSRF token of its own, and each is taken all the same."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, signed_in
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser


def signs_in_again(page: Page, site: Site, *, out: bool) -> None:
    """In another tab, which changes the token: after signing out there, or once the session has expired."""
    other = page.context.new_page()
    other.goto(site.url)
    before = token(other)
    if out:
        other.get_by_role("button", name=site.username).click()
        other.get_by_role("button", name="Sign out").click()
        expect(page.locator("#offline")).to_contain_text("You are signed out.")
    else:
        page.context.clear_cookies(name="sessionid")
    signed_in(other, site)
    assert token(other) != before
    other.close()
    page.evaluate("dispatchEvent(new Event('focus'))")  # one comes back to the window
    expect(page.locator("#offline")).to_be_hidden()


def token(page: Page) -> str:
    return str(page.evaluate("document.cookie.match(/csrftoken=(\\w+)/)[1]"))


@pytest.mark.parametrize("again", ["", "expired", "signed out"])
def test_a_pushed_form_is_taken(page: Page, site: Site, again: str) -> None:
    """Decide, rename, stop, ask again and archive: by htmx, and by the browser alone. No page says 403."""
    refused: list[str] = []
    page.on("response", lambda response: refused.append(response.url) if response.status == 403 else None)
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.get_by_label("Message").fill("Three at once.")
    page.get_by_label("Message").press("Enter")
    expect(page.locator(".ask")).to_have_count(3)
    if again:
        signs_in_again(page, site, out=again == "signed out")
    page.locator(".ask").first.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".ask")).to_have_count(2)
    page.locator(".ask").first.get_by_role("link", name="Reject…").click()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator(".ask")).to_have_count(1)
    page.locator("#menu-button").click()
    page.get_by_label("Title").fill("Another name")
    page.get_by_role("button", name="Rename").click()
    expect(page.locator("#name")).to_have_text("Another name")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-send]")).to_be_visible()
    page.get_by_role("button", name="Ask again").last.click()
    expect(page.locator(".ask")).to_have_count(3)
    page.locator("#menu-button").click()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("Archived.")).to_be_visible()
    assert refused == []


def test_a_pushed_form_without_htmx_is_taken(page: Page, site: Site) -> None:
    """The browser sends it by itself: the decision stands."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.get_by_label("Message").fill("Ask and go on.")
    page.get_by_label("Message").press("Enter")
    expect(page.locator(".ask")).to_be_visible()
    page.evaluate("""() => {
      const form = document.querySelector(".ask .acts"), copy = form.cloneNode(true);
      for (const name of [...copy.getAttributeNames()]) if (name.startsWith("hx-")) copy.removeAttribute(name);
      for (const field of copy.querySelectorAll("[name=csrfmiddlewaretoken]")) field.remove();
      form.replaceWith(copy);
    }""")
    page.locator(".ask").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text("It went on.")).to_be_visible()
