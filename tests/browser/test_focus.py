"""Who types on while an answer is on its way types on where they are: a script takes the focus from nobody."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.agentsite.processes import wait_for
from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

ANSWERED = """(event) => {
  window.answered = new Promise((done) => document.addEventListener(event, () => setTimeout(done), { once: true }));
}"""


def held(page: Page, address: str) -> list[Route]:
    """The requests to this address: they are on their way until the test lets them arrive."""
    routes: list[Route] = []
    page.route(re.compile(address), lambda route: routes.append(route))  # noqa: PLW0108 - Playwright takes no built-in
    return routes


def arrives(page: Page, routes: list[Route], event: str) -> None:
    """The one that is on its way arrives, and so does its answer: until the page has said this event of it."""
    wait_for(lambda: page.evaluate("1") and routes)  # a call to Playwright lets it hand over what came
    page.evaluate(ANSWERED, event)
    routes[0].fulfill(response=routes[0].fetch())
    page.evaluate("answered")


def in_the_composer(page: Page) -> Locator:
    return page.get_by_label("Message")


def in_the_form_of_another_card(page: Page) -> Locator:
    page.locator(".ask").nth(1).get_by_role("link", name="Reject…").click()
    return page.get_by_label("Reason (sent to the agent)")


@pytest.mark.parametrize("place", [in_the_composer, in_the_form_of_another_card])
def test_typing_on_after_a_decision_decides_nothing_more(
    page: Page, site: Site, place: Callable[[Page], Locator]
) -> None:
    """The answer comes in mid-word: what is typed stays whole in its field, and the next card waits (S34)."""
    say(page, site, "Three at once.")
    expect(page.locator(".ask")).to_have_count(3)
    field = place(page)
    sent = held(page, "/decide/")
    page.locator(".ask").first.get_by_role("button", name=re.compile("^Approve")).click()
    field.click()
    page.keyboard.type("What a ")
    arrives(page, sent, "htmx:afterRequest")
    expect(page.locator(".ask")).to_have_count(2)
    page.keyboard.type("name a file has")
    page.keyboard.press("Space")
    expect(field).to_be_focused()
    expect(field).to_have_value("What a name a file has ")
    assert page.evaluate("fetch(location.href).then((answer) => answer.text())").count('<article class="ask') == 2


@pytest.mark.parametrize("form", ["Edit", "Reject…"])
def test_a_form_that_opens_late_does_not_take_the_focus(page: Page, site: Site, form: str) -> None:
    """It opens on its card, and whoever writes elsewhere by then goes on."""
    say(page, site, "Three at once.")
    expect(page.locator(".ask")).to_have_count(3)
    asked = held(page, r"/card/\?as=")
    page.locator(".ask").first.get_by_role("link", name=form).click()
    field = page.get_by_label("Message")
    field.click()
    page.keyboard.type("What a ")
    arrives(page, asked, "htmx:afterSettle")
    expect(page.locator(".ask textarea").first).to_be_visible()
    page.keyboard.type("name")
    expect(field).to_have_value("What a name")


def test_a_message_that_is_taken_late_does_not_take_the_focus(page: Page, site: Site) -> None:
    """Whoever searches by then goes on searching."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_visible()
    sent = held(page, r"/c/\d+/prompts/")
    page.get_by_label("Message").fill("And again")
    page.get_by_label("Message").press("Enter")
    search = page.get_by_label("Search conversations")
    search.click()
    page.keyboard.type("What a ")
    arrives(page, sent, "htmx:afterRequest")
    expect(page.get_by_label("Message")).to_have_value("")
    page.keyboard.type("name")
    expect(search).to_have_value("What a name")


PRESSED_AT_ONCE = """() => document.addEventListener("focusin", ({ target }) => {
  if (!target.matches(".ask")) return;
  target.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  window.stayed = document.activeElement === target;
})"""


def test_a_key_right_after_the_focus_was_moved_is_not_meant(page: Page, site: Site) -> None:
    """Whoever still types when the next card is in focus does not press its button by that; a moment later A works."""
    say(page, site, "Three at once.")
    expect(page.locator(".ask")).to_have_count(3)
    page.evaluate(PRESSED_AT_ONCE)
    page.locator(".ask").first.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".ask")).to_have_count(2)
    expect(page.locator(".ask").first).to_be_focused()
    assert page.evaluate("stayed")
    press_a(page)


def press_a(page: Page) -> None:
    """Until Approve is in focus: right after a decision the key is not heard."""
    approve = page.locator(".ask .btn.primary").first

    def pressed() -> bool:
        page.keyboard.press("a")
        return bool(approve.evaluate("(button) => button === document.activeElement"))

    wait_for(pressed)
