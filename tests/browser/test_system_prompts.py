"""System prompts in a real browser: written in the admin, chosen for a conversation, and changed later."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser
LIST = "/admin/agents/systemprompt/"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of its own: what is the default here would be told to the model of every other test."""
    with serving(tmp_path_factory.mktemp("own")) as site:
        yield site


@pytest.fixture
def desk(context: BrowserContext, own: Site) -> Page:
    return signed_in(context.new_page(), own)


def write(page: Page, site: Site, name: str, text: str, *, default: bool = False) -> None:
    page.goto(f"{site.url}{LIST}add/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Text").fill(text)
    page.get_by_label("Default").set_checked(default)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully").first).to_be_visible()


def test_one_is_written_chosen_and_changed(desk: Page, own: Site, browser: Browser) -> None:
    """What was typed stays when another one is chosen; and all of it works without scripts."""
    page = desk
    write(page, own, "House", "Be brief. It is {date}.", default=True)
    write(page, own, "Pirate", "Arr, {user}.")

    page.goto(f"{own.url}/new/")
    page.get_by_label("Message").fill("help")
    page.get_by_text("Default (House)").first.click()
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Pirate").click()
    page.wait_for_url(re.compile(r"system_prompt=\d+"))
    expect(page.get_by_label("Message")).to_have_value("help")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text("I am the demo model").first).to_be_visible()

    page.get_by_label("Conversation menu").click()
    page.get_by_role("link", name="System prompt: Pirate").click()
    expect(page.get_by_label("Pirate")).to_be_checked()
    finds_nothing(page)
    page.get_by_label("Default (House)").check()
    page.get_by_role("button", name="Use this one").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    page.get_by_label("Conversation menu").click()
    expect(page.get_by_role("link", name="System prompt…")).to_be_visible()

    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    bare = plain.new_page()
    bare.goto(f"{own.url}/new/")
    bare.get_by_text("Default (House)").first.click()
    bare.get_by_role("link", name="Pirate").click()
    bare.get_by_role("button", name="List the files in my workspace").click()
    bare.wait_for_url(re.compile(r"/c/\d+/"))
    bare.get_by_label("Conversation menu").click()
    expect(bare.get_by_role("link", name="System prompt: Pirate")).to_be_visible()
    plain.close()


def test_two_who_edit_at_once_and_a_text_that_comes_back(desk: Page, own: Site) -> None:
    page, other = desk, desk.context.new_page()
    write(page, own, "Greeting", "Be polite.")
    for window in (page, other):
        window.goto(f"{own.url}{LIST}")
        window.get_by_role("link", name="Greeting").click()
    other.get_by_label("Text").fill("Be kind.")
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.get_by_text("was changed successfully").first).to_be_visible()
    page.get_by_label("Text").fill("Be quick.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("saved version 2 while you had this page open")).to_be_visible()
    expect(page.get_by_label("Text")).to_have_value("Be quick.")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".versions tbody tr")).to_have_count(3)
    finds_nothing(page, within=".versions")
    page.set_viewport_size({"width": 1280, "height": 900})

    page.get_by_label("Before: version 1").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Changes from version 1")).to_be_visible()
    expect(page.locator(".diff tr.del")).to_have_text(re.compile("Be polite."))
    expect(page.locator(".diff tr.add")).to_have_text(re.compile("Be quick."))
    page.get_by_role("link", name="Previous version").click()
    page.get_by_role("link", name="Previous version").click()
    finds_nothing(page, within="#content-main.approval")
    page.get_by_role("button", name="Use this text again").click()
    expect(page.get_by_label("Text")).to_have_value("Be polite.")
    expect(page.locator(".versions tbody tr")).to_have_count(4)
