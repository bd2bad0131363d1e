"""A page's sockets: where it is refused it asks less and less often; it has one of each, however often one tries."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.agentsite.processes import wait_for
from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

MADE = """
window.made = [];
window.played = null;
window.WebSocket = class extends WebSocket {
  constructor(url) {
    if (played) return played(url);
    super(url);
    made.push(this);
  }
};
function unanswered(url) {
  const socket = Object.assign(new EventTarget(), { url, readyState: WebSocket.CONNECTING, at: performance.now() });
  socket.says = (event) => {
    socket.readyState = event.type === "open" ? WebSocket.OPEN : WebSocket.CLOSED;
    socket[`on${event.type}`]?.(event);
    socket.dispatchEvent(event);
  };
  socket.send = () => {};
  socket.close = () => setTimeout(() => socket.says(new CloseEvent("close", { code: 1006 })));
  made.push(socket);
  return socket;
}
function refused(url, code = 4429) {
  const socket = unanswered(url);
  setTimeout(() => {
    socket.says(new Event("open"));
    socket.says(new CloseEvent("close", { code }));
  });
  return socket;
}
Object.assign(window, { unanswered, refused });
window.live = (state = WebSocket.OPEN) => {
  const urls = made.filter((one) => one.readyState <= state).map((one) => one.url);
  return urls.map((url) => url.split("?")[0]);
};
window.lose = () => Promise.all(made.map((one) => new Promise((done) => {
  one.addEventListener("close", done);
  one.close();
})));
"""
"""Keeps every socket that a page makes. Those made while `played` is set are unanswered, or refused."""


def followed(page: Page, site: Site) -> None:
    """A conversation whose page has both its sockets, which the test can lose."""
    page.add_init_script(MADE)
    say(page, site, "Hello there")
    wait_for(lambda: page.evaluate("made.length === 2 && made.every((one) => one.readyState === WebSocket.OPEN)"))


def test_one_socket_each_however_often_one_tries(page: Page, site: Site) -> None:
    """The network is back, the page comes into view and somebody presses the button, all at once (I9)."""
    followed(page, site)
    live = page.evaluate("""async () => {
      await lose();
      dispatchEvent(new Event("online"));
      document.dispatchEvent(new Event("visibilitychange"));
      document.querySelector("#offline button").click();
      return live();
    }""")
    assert len(live) == 2
    assert len(set(live)) == 2
    expect(page.locator("#offline")).to_be_hidden()


def test_a_socket_that_nobody_answers_is_given_up(page: Page, site: Site) -> None:
    """After half a minute another is tried, and the first is gone (I9)."""
    page.clock.install()
    followed(page, site)
    page.evaluate("played = unanswered; lose()")
    wait_for(lambda: page.evaluate("made.length === 4"))
    expect(page.locator("#offline")).to_contain_text("Reconnecting now")
    page.evaluate("played = null")
    page.clock.fast_forward(31_000)
    expect(page.locator("#offline")).to_be_hidden()
    wait_for(lambda: page.evaluate("[live().length, live(WebSocket.CONNECTING).length]") == [2, 0])


def test_a_page_that_is_refused_waits_longer_each_time(page: Page, site: Site) -> None:
    """A socket that is refused opens first, for the site to say why: that is no connection (I9)."""
    page.add_init_script(MADE + "played = refused")
    page.goto(f"{site.url}/new/")
    expect(page.locator("#offline")).to_contain_text(re.compile(r"Reconnecting in ([3-9]|\d\d) s"))


def test_an_admin_page_that_is_refused_waits_longer_each_time(page: Page, site: Site) -> None:
    """And asks the site for nothing but the socket."""
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if request.resource_type == "fetch" else None)
    page.add_init_script(MADE + "played = refused; Math.random = () => 0")
    page.goto(f"{site.url}/admin/conversations/approval/")
    wait_for(lambda: page.evaluate("made.length >= 5"))
    waits = [after - before for before, after in pairwise(page.evaluate("made.map((one) => one.at)"))]
    assert waits[3] > 3 * waits[0]
    assert fetched == []
