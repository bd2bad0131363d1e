"""Memory in a real browser: remembered in a chat with an approval, known in the next one, forgotten on its page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

TEA = "I prefer green tea."


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the demo model."""
    with serving(tmp_path_factory.mktemp("memory")) as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, demo: Site) -> Page:
    return signed_in(context.new_page(), demo)


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve", exact=True).click()


def test_it_is_remembered_known_and_forgotten(page: Page, demo: Site) -> None:
    say(page, demo, f"Remember that {TEA}")
    expect(page.locator(".ask")).to_contain_text(TEA)
    approve(page)
    expect(page.get_by_text("I will remember it.")).to_be_visible()
    first = page.url
    say(page, demo, "What do you know of me?")
    assert page.url != first
    expect(page.locator(".exchange").last).to_contain_text(TEA)

    page.goto(f"{demo.url}/account/")
    page.get_by_role("link", name="My memory").click()
    row = page.get_by_role("main").get_by_role("listitem").filter(has_text=TEA)
    expect(row.get_by_role("link", name=re.compile("^Remember that"))).to_be_visible()
    row.get_by_role("button", name=re.compile("^Pin")).click()
    expect(row.get_by_text("Pinned.", exact=True)).to_be_visible()
    row.get_by_role("link", name=re.compile("^Edit")).click()
    page.get_by_label("Text").fill("I prefer coffee.")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_role("main").get_by_role("listitem").filter(has_text="I prefer coffee.")
    row.get_by_role("link", name=re.compile("^Forget")).click()
    expect(page.get_by_role("blockquote")).to_have_text("I prefer coffee.")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()

    say(page, demo, "What do you know of me?")
    expect(page.locator(".exchange").last).to_contain_text("Nothing is remembered yet.")


def test_the_agent_forgets_what_it_is_asked_to_after_a_card_that_says_what_goes(page: Page, demo: Site) -> None:
    page.goto(f"{demo.url}/account/memory/")
    page.get_by_label("Something to remember").fill("My bicycle is red.")
    page.get_by_role("button", name="Add").click()
    say(page, demo, "Forget that my bicycle is red")
    expect(page.locator(".ask")).to_contain_text("My bicycle is red.")
    expect(page.get_by_role("link", name="Approve and remember…")).to_have_count(0)
    approve(page)
    expect(page.get_by_role("paragraph").filter(has_text=re.compile(r"^Memory \d+ is forgotten")).last).to_be_visible()
    page.goto(f"{demo.url}/account/memory/")
    expect(page.get_by_text("Nothing yet.")).to_be_visible()


def test_switched_off_the_agent_has_no_tools_for_it(page: Page, demo: Site) -> None:
    page.goto(f"{demo.url}/account/memory/")
    page.get_by_role("button", name="Switch memory off").click()
    expect(page.get_by_text("Memory is off")).to_be_visible()
    say(page, demo, f"Remember that {TEA}")
    expect(page.locator(".exchange").last).to_contain_text("is not available here")
    page.goto(f"{demo.url}/account/memory/")
    page.get_by_role("button", name="Switch memory on").click()
    expect(page.get_by_text("Memory is on.")).to_be_visible()


def test_on_a_phone_and_for_everybody(browser: Browser, page: Page, demo: Site) -> None:
    phone = browser.new_context(viewport={"width": 390, "height": 844}, storage_state=page.context.storage_state())
    small = phone.new_page()
    finds_nothing(small, f"{demo.url}/account/memory/")
    small.get_by_label("Something to remember").fill("x" * 2_001)
    small.get_by_role("button", name="Add").click()
    expect(small.get_by_role("alert")).to_contain_text("at most 2,000 characters, and this has 2,001")
    expect(small.get_by_label("Something to remember")).to_have_value("x" * 2_001)
    finds_nothing(small)
    small.get_by_label("Something to remember").fill(f"{'long' * 60} {TEA}")
    small.get_by_label("Pinned").check()
    small.get_by_role("button", name="Add").click()
    finds_nothing(small)
    small.get_by_role("link", name=re.compile("^Forget")).click()
    finds_nothing(small)
    small.get_by_role("button", name="Forget").click()
    expect(small.get_by_text("Nothing yet.")).to_be_visible()
    phone.close()
