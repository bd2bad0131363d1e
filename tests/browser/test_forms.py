"""Forms in the browser: every kind of field, rows with and without scripts; in a form, a question and an edit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the workflows of the company in the pictures."""
    apps = {"AGENTSITE_APPS": "tests.browser.screenshots.app"}
    with serving(tmp_path_factory.mktemp("forms"), None, "ann", **apps) as site:
        yield site


def group(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name, exact=True)


def fills(page: Page) -> None:
    """Fill in what the form of a journey needs, and one of each kind."""
    page.get_by_label("Title").fill("Summer at the sea")
    page.get_by_label("Price").fill("1250.50")
    group(page, "By train").get_by_label("Yes").check()
    group(page, "Colours of the other bags").get_by_label("red").check()
    group(page, "Colours of the other bags").get_by_label("blue").check()
    page.get_by_label("Office").fill("Office 700")
    page.get_by_label("Starts").fill("2026-12-24")
    page.get_by_label("Meeting", exact=True).fill("2026-12-24T09:30")
    page.get_by_label("Time zone of Meeting").fill("Europe/Berlin")
    page.get_by_label("Takes").fill("2 days 4 hours")
    group(page, "Address").get_by_label("City").fill("Ulm")
    group(page, "Pay").get_by_label("Cash").check()
    group(page, "Pay").get_by_label("Amount").fill("99.90")
    group(page, "Stops").get_by_label("City").first.fill("Rome")
    group(page, "Stops").get_by_label("lunch").first.check()


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desk", "phone"])
def test_a_form_of_every_kind_is_filled_in_confirmed_and_run(page: Page, site: Site, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{site.url}/workflows/journey.plan/")
    expect(group(page, "Pay").get_by_label("Amount")).to_be_hidden()
    page.get_by_role("button", name="Continue").click()
    told = page.get_by_role("alert")
    expect(told).to_contain_text(
        "Nothing has started. Check Title, Price, By train, Colours of the other bags, Starts,"
    )
    finds_nothing(page)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    fills(page)
    page.get_by_role("button", name="Add one").click()
    expect(group(page, "Stops").get_by_label("City")).to_have_count(2)
    expect(group(page, "Stops").get_by_label("City").nth(1)).to_be_focused()
    page.keyboard.type("Ems")
    page.keyboard.press("Tab")
    page.keyboard.type("7")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    page.get_by_role("button", name="Continue").click()
    asked = page.locator(".asked")
    for words in (
        "Yes",
        "red, blue",
        "Office 700",
        "2026-12-24 09:30",
        "2 days 4 hours",
        "Cash",
        "City: Ems\nNights: 7",
    ):
        expect(asked).to_contain_text(words)
    finds_nothing(page)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text("Summer at the sea: 1250.50, 2 stops, paid cash")).to_be_visible()
    page.goto(f"{site.url}/workflows/journey.plan/")
    page.get_by_role("link", name="Use the values of your last run").click()
    expect(page.get_by_label("Takes")).to_have_value("2 days 4 hours")
    expect(group(page, "Stops").get_by_label("City").nth(1)).to_have_value("Ems")
    expect(group(page, "Pay").get_by_label("Cash")).to_be_checked()


def test_a_question_and_an_edit_have_rows(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/journey.choose/")
    page.get_by_role("button", name="Start").last.click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    card = page.locator("article.ask")
    card.get_by_role("button", name="Add one").click()
    expect(card.get_by_label("City")).to_have_count(2)
    expect(card.get_by_label("City").nth(1)).to_be_focused()
    card.get_by_label("City").nth(0).fill("Rome")
    card.get_by_label("City").nth(1).fill("Ems")
    card.get_by_label("Meeting", exact=True).fill("2026-12-24T09:30")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    card.get_by_role("button", name="Answer").click()
    asked = page.locator("article.ask", has_text="Destructive")
    expect(asked).to_contain_text("  to the sea.", use_inner_text=True)
    asked.get_by_role("link", name="Edit").or_(asked.get_by_role("button", name="Edit")).click()
    asked.get_by_role("button", name="Remove Stops, 1").click()
    expect(asked.get_by_label("City")).to_have_count(1)
    asked.get_by_role("button", name="Add one").click()
    expect(asked.get_by_label("City")).to_have_count(2)
    asked.get_by_label("City").nth(1).fill("Ulm")
    asked.get_by_label("Starts").fill("2027-01-02")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    asked.get_by_role("button", name="Approve as edited").dblclick()
    expect(page.get_by_text("Nights: 1 in Ems, 1 in Ulm; from 2027-01-02.").last).to_be_visible()
    expect(page.get_by_text("Your input was not used")).to_have_count(0)


def test_without_scripts_rows_are_added_and_branches_chosen(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    signed_in(page, site)
    page.goto(f"{site.url}/workflows/journey.plan/")
    fills(page)
    page.get_by_role("button", name="Add one").click()
    expect(group(page, "Stops").get_by_label("City")).to_have_count(2)
    group(page, "Stops").get_by_label("City").nth(1).fill("Ems")
    page.get_by_role("button", name="Remove Stops, 1").click()
    expect(group(page, "Stops").get_by_label("City")).to_have_value("Ems")
    expect(page.get_by_label("Price")).to_have_value("1250.50")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".asked")).to_contain_text("City: Ems")
    expect(page.locator(".asked")).not_to_contain_text("Rome")
    context.close()
