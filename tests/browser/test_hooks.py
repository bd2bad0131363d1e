"""Webhooks against a real site: made on its pages, sent over the wire, a storm of them while people use it."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.agentsite.processes import wait_for
from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser

STORM, SENDERS = 1_000, 16
PAGE_SECONDS = 30.0  # as long as tests in a browser wait for anything
"""A page while the storm lasts, on a machine whose two cores are busy with it."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the demo model."""
    with serving(tmp_path_factory.mktemp("hooks")) as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, demo: Site) -> Page:
    return signed_in(context.new_page(), demo)


def made(page: Page, demo: Site, text: str) -> tuple[str, str]:
    """Make a trigger whose senders have a token; return its address and the token."""
    page.goto(f"{demo.url}/triggers/")
    page.get_by_label("What to do").fill(text)
    page.get_by_label("When").select_option("hook")
    expect(page.get_by_label("Time zone")).to_be_hidden()
    page.get_by_label("How the sender proves who it is").select_option("token")
    finds_nothing(page)
    page.get_by_role("button", name="Set trigger").click()
    secret, url = page.get_by_label("The secret"), page.get_by_label("The address")
    expect(page.get_by_text("Copy it now: it will not be shown again.")).to_be_visible()
    finds_nothing(page)
    return url.input_value(), secret.input_value()


def send(url: str, token: str, id: str, body: object) -> tuple[int, dict[str, object]]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": id}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read())
    except HTTPError as error:
        return error.code, {}


def test_the_agent_reads_what_came(page: Page, demo: Site) -> None:
    url, token = made(page, demo, "read it")
    assert send(url, token, "1", {"title": "The pump is broken"})[0] == 202
    page.goto(f"{demo.url}/triggers/")
    page.locator("main").get_by_role("link", name="read it").first.click()
    page.get_by_role("link", name="Open its conversation").click()
    expect(page.get_by_role("code").filter(has_text="The pump is broken").last).to_be_visible(timeout=60_000)
    expect(page.get_by_role("code").filter(has_text="payload.json").last).to_be_visible()


def test_a_storm_loses_nothing_and_doubles_nothing(page: Page, demo: Site) -> None:
    """A thousand at once, each sent twice: every id has one firing, and pages stay quick meanwhile."""
    url, token = made(page, demo, "note it")
    trigger = page.request.get(f"{demo.url}/api/triggers/").json()["results"][0]["id"]

    def one(number: int) -> object:
        for _ in range(20):  # as senders do
            status, answer = send(url, token, str(number % STORM), {"number": number})
            if status == 202:
                return answer["firing"]
            time.sleep(0.2)
        return None

    slowest = 0.0
    with ThreadPoolExecutor(SENDERS) as senders:
        sent = [senders.submit(one, number) for number in range(STORM + STORM // 5)]
        while not all(each.done() for each in sent):
            begun = time.monotonic()
            assert page.request.get(f"{demo.url}/triggers/").status == 200
            slowest = max(slowest, time.monotonic() - begun)
    firings = [each.result() for each in sent]
    assert None not in firings
    assert len(set(firings)) == STORM
    assert firings[STORM:] == firings[: STORM // 5]
    found = page.request.get(f"{demo.url}/api/triggers/{trigger}/firings/").json()
    assert found["count"] == STORM
    assert slowest < PAGE_SECONDS, slowest

    def ended() -> bool:
        told = page.request.get(f"{demo.url}/api/triggers/{trigger}/firings/?page_size=100&page=10").json()
        return [each["state"] for each in told["results"]].count("started") >= 3

    wait_for(ended)
