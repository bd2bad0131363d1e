"""Triggers in a real browser, over the real worker: a reminder arrives while the page is closed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the demo model."""
    with serving(tmp_path_factory.mktemp("triggers")) as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, demo: Site) -> Page:
    return signed_in(context.new_page(), demo)


def test_a_reminder_arrives_without_anybody_there(page: Page, demo: Site) -> None:
    """Its turn has no message of a person, on the page and on record."""
    say(page, demo, "Remind me in one minute to look at the logs")
    expect(page.get_by_text("It fires once, one minute after you approve.")).to_be_visible()
    page.get_by_role("button", name="Approve and").click()
    expect(page.get_by_text("The trigger is set: “look at the logs”.")).to_be_visible()
    chat, context = page.url, page.context
    page.close()
    back = context.new_page()
    back.goto(chat)
    expect(back.get_by_text("Reminder: look at the logs")).to_be_visible(timeout=100_000)
    said = back.get_by_role("group", name="A trigger")
    expect(said).to_contain_text("Reminder")
    prompt = (said.get_attribute("id") or "").split("-")[1]
    expect(back.locator("[data-send]")).to_be_visible()  # the turn has ended
    on_record = json.loads(back.request.get(f"{demo.url}/api/prompts/{prompt}/").text())
    assert (on_record["input"], on_record["state"]) == (None, "completed")


def test_one_is_set_seen_run_and_deleted_on_its_pages(page: Page, demo: Site) -> None:
    page.goto(f"{demo.url}/triggers/")
    page.get_by_label("What to do").fill("list the files")
    page.get_by_label("When").select_option("weekly")
    expect(page.get_by_label("Cron expression")).to_be_hidden()
    page.get_by_role("button", name="Show the next times").click()
    expect(page.locator(".times li")).to_have_count(5)
    finds_nothing(page)
    page.get_by_role("button", name="Set trigger").click()
    expect(page.get_by_text("The trigger is set: every Monday at 09:00")).to_be_visible()
    page.locator("main").get_by_role("link", name="list the files").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("table").get_by_text("Started")).to_be_visible()
    finds_nothing(page)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted. The turns that it started are still there.")).to_be_visible()
