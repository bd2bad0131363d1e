"""Workflows in the browser: from the selector to the result, from the message box, and in a chat's workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the workflows of the company in the pictures, where the demo model answers."""
    apps = {"AGENTSITE_APPS": "tests.browser.screenshots.app"}
    with serving(tmp_path_factory.mktemp("workflows"), None, "ann", **apps) as site:
        yield site


def runs(page: Page, site: Site, name: str) -> int:
    page.goto(f"{site.url}/workflows/{name}/runs/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page.locator(".runs > li").count()


def test_from_the_selector_to_the_result_with_one_approval(page: Page, site: Site) -> None:
    page.get_by_role("link", name="Workflows", exact=True).click()
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_label("Search workflows").fill("courier")
    expect(page.locator(".flow")).to_have_count(1)
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name=re.compile("Send a parcel")).click()
    page.get_by_label("Article").fill("a")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing has started.")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_label("Article").fill("atlas")
    page.get_by_label("Pieces").fill("3")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    card = page.locator("article.ask")
    expect(card).to_contain_text("courier for 3 atlas")
    expect(page.get_by_label("Message")).to_have_count(0)
    expect(page.locator("#act")).to_contain_text("This run is waiting for you")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    card.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".came")).to_contain_text("tomorrow, 9:00")
    expect(page.locator("#act")).to_contain_text("This run has ended.")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_label("Article")).to_have_value("atlas")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.locator(".runs")).to_contain_text("Completed")
    page.wait_for_load_state()  # with its style sheets
    finds_nothing(page)


def test_a_double_click_is_one_run(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/mail.sum/")
    page.get_by_role("button", name="Start").dblclick()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text("Eleven mails.")).to_be_visible()
    assert runs(page, site, "mail.sum") == 1


def test_a_run_can_be_stopped_from_its_page(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/shelf.count/")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#act")).to_contain_text("This run is sleeping")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#act")).to_contain_text("This run has ended.")
    expect(page.get_by_role("link", name="Run again")).to_be_visible()


def test_what_asks_once_more_starts_what_was_typed_and_can_be_changed(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/month.close/")
    page.get_by_label("Month").fill("2025-10")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("You are about to start")).to_be_visible()
    finds_nothing(page)
    page.get_by_role("button", name="Change the input").click()
    page.get_by_label("Month").fill("2025-11")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("The bank has no statement for 2025-11 yet.")
    assert runs(page, site, "month.close") == 1


def test_the_menu_of_the_message_box_by_its_keys(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    field, menu = page.get_by_label("Message"), page.locator("#slash")
    field.press_sequentially("/")
    expect(menu.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    field.press("ArrowDown")
    expect(menu.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    field.press("Escape")
    expect(menu).to_be_hidden()
    field.press_sequentially("mail")
    expect(menu.get_by_role("option")).to_have_count(1)
    field.press("Enter")
    expect(field).to_have_value("/mail.sum ")
    expect(menu).to_contain_text("Takes no input.")
    field.press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text("Eleven mails.")).to_be_visible()


def test_the_button_beside_the_message_box_opens_the_menu_and_a_row_is_a_link(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_role("link", name="Start a workflow").click()
    row = page.locator("#slash").get_by_role("option", name=re.compile("parcel.send"))
    expect(row).to_have_attribute("href", "/workflows/parcel.send/")
    row.click()
    expect(page.get_by_label("Message")).to_have_value("/parcel.send ")
    page.reload()  # what was typed is kept, and the menu says at once what it takes
    page.get_by_label("Message").focus()
    expect(page.locator("#slash")).to_contain_text("article=…")
    page.locator("#slash").get_by_role("link", name="Open the form").click()
    page.wait_for_url(f"{site.url}/workflows/parcel.send/")


def test_a_line_that_lacks_something_opens_the_form_and_its_run_is_in_the_chat(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("Hello there.")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    chat = page.url.partition("#")[0]
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_label("Message").fill("/parcel.send pieces=7")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/workflows/parcel.send/in/"))
    expect(page.get_by_label("Pieces")).to_have_value("7")
    page.get_by_label("Article").fill("atlas")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(re.escape(chat)))
    expect(page.locator("article.ask")).to_contain_text("courier for 7 atlas")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("link", name="Run again")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("")


def test_a_workspace_is_a_chat_which_waits_until_the_run_has_ended(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("Write notes.md: Milk, bread, coffee")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator("article.ask")).to_be_visible()
    chat = page.url.partition("#")[0]
    page.goto(f"{site.url}/workflows/project.archive/")
    page.get_by_label("Name").fill("Shop")
    page.get_by_label("Workspace").select_option(label="Write notes.md: Milk, bread, coffee")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("A turn is in progress in this chat.")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("Shop")
    page.goto(chat)
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.goto(f"{site.url}/workflows/project.archive/")
    page.get_by_label("Name").fill("Shop")
    page.get_by_label("Workspace").select_option(label="Write notes.md: Milk, bread, coffee")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(re.escape(chat)))
    expect(page.get_by_text("Archived Shop.")).to_be_visible()


def test_runs_stand_in_the_list_only_where_they_are_asked_for(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/mail.sum/")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Eleven mails.")).to_be_visible()
    page.goto(f"{site.url}/")
    rows = page.locator(".conv", has_text="Summarise support mail")
    expect(page.get_by_role("link", name="Runs of workflows")).to_be_visible()
    expect(rows).to_have_count(0)
    page.get_by_role("link", name="Runs of workflows").click()
    expect(rows.first).to_be_visible()
    finds_nothing(page)
