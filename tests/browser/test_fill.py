"""A form filled in from one line, with the demo model: in the browser, by a person who then starts the run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser

LINE = (
    'Create a python project called Harbour with a short description "Sells tea by the sea.", without running its tests'
)
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A fresh site, as `make run` starts it."""
    with serving(tmp_path_factory.mktemp("described"), None, "ann") as site:
        yield site


def describe(page: Page, site: Site, line: str) -> None:
    page.goto(f"{site.url}/workflows/project.create/")
    page.get_by_text("Describe it in your own words").click()
    page.get_by_label("What do you want?").fill(line)
    finds_nothing(page)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_one_line_fills_in_the_form_and_a_person_starts_the_run(page: Page, site: Site, size: ViewportSize) -> None:
    describe(page, site, LINE)
    page.set_viewport_size(size)
    page.get_by_label("Folder").fill("harbour-shop")
    page.get_by_role("button", name="Fill in the form").click()
    page.wait_for_url(re.compile(r"/filled/\d+/"))
    told = page.locator("#described")
    expect(told).to_contain_text("Filled in from your description: Name, Kind, Description, Run its tests.")
    expect(told).to_contain_text("it is not a language model")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Harbour")
    expect(page.get_by_label("Description optional")).to_have_value("Sells tea by the sea.")
    expect(page.get_by_label("Folder")).to_have_value("harbour-shop")
    expect(page.get_by_role("group", name="Run its tests").get_by_label("No")).to_be_checked()
    finds_nothing(page)
    page.set_viewport_size(size)
    told.get_by_role("link", name="Kind").click()
    page.get_by_label("Folder").fill(f"harbour-{size['width']}")
    page.get_by_label("Folder").press("Enter")  # which starts the run, and asks no model
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator("article.ask")).to_contain_text(f"harbour-{size['width']}")
    page.goto(f"{site.url}/")
    expect(page.locator("#list")).not_to_contain_text("called Harbour")


def test_it_works_without_scripts(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context.new_page(), site)
    page.goto(f"{site.url}/workflows/project.create/")
    page.get_by_text("Describe it in your own words").click()
    page.get_by_label("What do you want?").fill("A website called Corner Shop")
    page.get_by_role("button", name="Fill in the form").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Corner Shop")
    context.close()


def test_what_it_cannot_read_leaves_the_form_and_the_line(page: Page, site: Site) -> None:
    describe(page, site, "Hmm.")
    page.set_viewport_size(DESK)
    page.get_by_role("button", name="Fill in the form").click()
    expect(page.get_by_text("No value for a field of this form was found in it.")).to_be_visible()
    expect(page.get_by_label("What do you want?")).to_have_value("Hmm.")
    finds_nothing(page)
