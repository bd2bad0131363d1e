"""The page that moves, in a real browser over real processes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, WebSocketRoute, expect

from tests.browser.conftest import PASSWORD, WAIT_MS, Site
from tests.browser.test_first_turn import say
from tests.browser.test_focus import press_a

pytestmark = pytest.mark.browser

SHOWN = """() => {
  const copy = document.getElementById("turns").cloneNode(true);
  for (const one of copy.querySelectorAll("time, [name=csrfmiddlewaretoken], [data-copy]")) one.remove();
  for (const one of copy.querySelectorAll("*"))
    for (const name of ["open", "data-set", "data-from"]) one.removeAttribute(name);
  return copy.innerHTML.replace(/\\s+/g, " ").replace(/> </g, "><").trim();
}"""
"""The turns as they stand, without what differs between two moments of the same page."""


def shown(page: Page) -> str:
    return str(page.evaluate(SHOWN))


def test_text_streams_in_and_details_stay_open(page: Page, site: Site) -> None:
    """Nobody reloads: text comes bit by bit, what a reader opened stays open, what is typed stays typed (S72, S73)."""
    say(page, site, "Stream slowly.")
    page.evaluate("window.neverReloaded = true")
    expect(page.get_by_text(re.compile("Agent is working… 1 step"))).to_be_visible()
    page.locator(".steps > summary").click()
    page.locator(".step > summary").click()
    field = page.get_by_label("Message")
    field.fill("typed meanwhile")
    growing = page.locator(".growing")
    expect(growing).to_have_attribute("aria-busy", "true")
    expect(growing).to_contain_text("paragraph number 3")
    first = growing.inner_text()
    expect(growing).to_contain_text("paragraph number 6")
    assert growing.inner_text().startswith(first.rpartition(" ")[0])
    expect(page.get_by_text("The end of it.")).to_be_visible()
    expect(growing).to_have_count(0)
    expect(page.locator(".steps")).to_have_attribute("open", "")
    expect(page.locator(".step")).to_have_attribute("open", "")
    expect(field).to_have_value("typed meanwhile")
    expect(field).to_be_focused()
    assert page.evaluate("window.neverReloaded")


def test_a_reload_at_any_moment_shows_the_same(page: Page, context: BrowserContext, site: Site) -> None:
    """What the open page made of the pushes is what the server renders, while it streams and after."""
    address = say(page, site, "Stream slowly.")
    other = context.new_page()
    for words in ("paragraph number 3", "paragraph number 6", "The end of it."):
        expect(page.get_by_text(words)).to_be_visible()
        same(page, other, address)
    say(page, site, "Ask and go on.")
    expect(page.locator(".ask")).to_be_visible()
    address = page.url.partition("#")[0]
    same(page, other, address)
    page.locator(".ask").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text("It went on.")).to_be_visible()
    same(page, other, address)


def same(page: Page, other: Page, address: str) -> None:
    """Both pages come to show the same: the one that lived, and one that was loaded now."""
    for _ in range(100):
        other.goto(address)
        if shown(page) == shown(other):
            return
        page.wait_for_timeout(50)
    assert shown(page) == shown(other)


class Line:
    """The sockets of a page, which can be cut and joined again."""

    def __init__(self, page: Page) -> None:
        self.down = False
        self._open: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("/ws/"), self._opened)

    def _opened(self, socket: WebSocketRoute) -> None:
        if self.down:
            socket.close(code=1011)
        else:
            self._open.append(socket)
            socket.connect_to_server()

    def cut(self) -> None:
        """Close what is open, and whatever is opened from now on."""
        self.down = True
        for socket in self._open:
            socket.close(code=1011)


def test_offline_for_a_turn_and_back(page: Page, context: BrowserContext, site: Site) -> None:
    """Cut off, the page says so and keeps what is typed; back, it shows every event, once (I9, T-38)."""
    line = Line(page)
    address = say(page, site, "Hello.")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    expect(page.locator("#offline")).to_be_hidden()
    line.cut()
    expect(page.locator("#offline")).to_contain_text(re.compile("Connection lost. Reconnecting"))
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_label("Message").fill("Not yet sent.")
    other = context.new_page()
    other.goto(address)
    other.get_by_label("Message").fill("Look around, then say the day.")
    other.get_by_label("Message").press("Enter")
    for command in ("echo two files", "echo it is Friday"):
        expect(other.locator(".ask")).to_contain_text(command)
        other.locator(".ask").get_by_role("button", name=re.compile("^Approve")).click()
        expect(other.locator(".done")).to_have_count(1 if "two" in command else 2)
    expect(other.get_by_text("Two files, Friday.")).to_be_visible()
    expect(page.get_by_text("I will look.")).to_have_count(0)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#offline")).to_contain_text("Connection lost")
    line.down = False
    expect(page.get_by_text("Two files, Friday.")).to_be_visible()
    expect(page.locator("#offline")).to_be_hidden()
    for words in ("I will look.", "Now the day.", "Two files, Friday."):
        expect(page.locator(".prose", has_text=words)).to_have_count(1)
    expect(page.get_by_label("Message")).to_have_value("Not yet sent.")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    same(page, other, address)


def test_a_decision_moves_the_focus_to_the_next(page: Page, site: Site) -> None:
    """By keys alone: A moves to Approve, Enter decides, and the next card is in focus; after the last the field."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.get_by_label("Message").fill("Three at once.")
    page.get_by_label("Message").press("Enter")
    expect(page).to_have_title(re.compile(r"^\(3\)"))
    expect(page.locator("#announce")).to_contain_text("The agent asks")
    for left in (2, 1, 0):
        page.locator("h1").click()
        press_a(page)
        page.keyboard.press("Enter")
        expect(page.locator(".ask")).to_have_count(left)
        expect(page.locator(".ask").first if left else page.get_by_label("Message")).to_be_focused()
    expect(page.get_by_text("All three seen.")).to_be_visible()
    expect(page).not_to_have_title(re.compile(r"^\("))


def test_without_a_script_everything_works(browser: Browser, site: Site, page: Page) -> None:
    """Plain forms and links: send, read, decide, stop; the page says how to see more."""
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(WAIT_MS)
    plain = context.new_page()
    plain.goto(site.url)
    plain.get_by_label("User name").fill(site.username)
    plain.get_by_label("Password").fill(PASSWORD)
    plain.get_by_role("button", name="Sign in").click()
    plain.get_by_label("Message").fill("Ask and go on.")
    plain.get_by_role("button", name="Send").click()
    until(plain, lambda: plain.locator(".ask").count() > 0)
    plain.get_by_role("button", name=re.compile("^Approve")).click()
    until(plain, lambda: plain.get_by_text("It went on.").count() > 0)
    expect(plain.get_by_text(re.compile("Approved by you"))).to_be_visible()
    context.close()


def until(page: Page, condition: Callable[[], bool]) -> None:
    """Load the page again until this holds."""
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(100)
        page.reload()
    raise AssertionError("the page never came to show it")


def test_an_answer_that_takes_its_time_changes_nothing_back(page: Page, site: Site) -> None:
    """The socket told of the whole turn before the answer to its message came: the page stays as it is."""
    say(page, site, "Hello there")
    expect(page.locator("#turns").get_by_text("Hello.")).to_have_count(1)
    expect(page.locator("[data-send]")).to_be_visible()  # what it said is there before its turn has ended
    held: list[Route] = []
    page.route(re.compile(r"/c/\d+/prompts/"), lambda route: held.append(route))  # noqa: PLW0108 - Playwright takes no built-in
    page.get_by_label("Message").fill("And again")
    page.get_by_label("Message").press("Enter")
    wait_for_held(page, held)
    answer = held[0].fetch()
    expect(page.locator("#turns").get_by_text("Hello.")).to_have_count(2)
    expect(page.locator("[data-send]")).to_be_visible()
    with page.expect_response(re.compile("/prompts/")):
        held[0].fulfill(response=answer)
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("[data-send]")).to_be_visible()
    expect(page.locator("[data-stop]")).to_have_count(0)


def test_after_an_answer_that_was_lost_one_can_write_on(
    page: Page, browser: Browser, context: BrowserContext, site: Site
) -> None:
    """The message had arrived: it is taken once, and the next one says so and then goes through."""
    failing = browser.new_context(storage_state=context.storage_state())  # whose console tells of the failure
    failing.set_default_timeout(WAIT_MS)
    other = failing.new_page()
    say(other, site, "Hello there")
    expect(other.locator("#turns").get_by_text("Hello.")).to_have_count(1)
    expect(other.locator("[data-send]")).to_be_visible()
    held: list[Route] = []
    other.route(re.compile(r"/c/\d+/prompts/"), lambda route: held.append(route))  # noqa: PLW0108 - Playwright takes no built-in
    field = other.get_by_label("Message")
    field.fill("And again")
    field.press("Enter")
    wait_for_held(other, held)
    held[0].fetch()
    held[0].abort()
    other.unroute_all()
    expect(other.locator("#turns").get_by_text("Hello.")).to_have_count(2)
    expect(other.locator("[data-send]")).to_be_visible()
    field.fill("Something else")
    field.press("Enter")
    expect(other.get_by_text(re.compile("did arrive"))).to_be_visible()
    expect(field).to_have_value("Something else")
    field.press("Enter")
    expect(other.locator("#turns").get_by_text("Hello.")).to_have_count(3)
    failing.close()


def wait_for_held(page: Page, held: list[Route]) -> None:
    for _ in range(200):
        if held:
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing was sent")
