"""Files of a form in the browser, with a script and without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser
DESK: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a workflow that takes files of up to 1 MB."""
    more = {"AGENTSITE_APPS": "tests.browser.filing", "AGENTSITE_UPLOAD_MB": "1"}
    with serving(tmp_path_factory.mktemp("files"), None, "ann", **more) as site:
        yield site


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "sales.csv"
    file.write_bytes(b"1,2\n" * 100)
    return file


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large.csv"
    file.write_bytes(b"x" * (1024 * 1024 + 1))
    return file


@pytest.fixture
def without_scripts(browser: Browser, site: Site) -> Iterator[Page]:
    """A window that runs no scripts, logged in."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    yield signed_in(context.new_page(), site)
    context.close()


def test_a_file_is_sent_as_soon_as_it_is_chosen(page: Page, site: Site, table: Path, large: Path) -> None:
    page.goto(f"{site.url}/workflows/sales.sum/")
    finds_nothing(page)
    page.set_viewport_size(DESK)
    expect(page.get_by_role("button", name="Upload")).to_have_count(0)
    page.get_by_label("Title").fill("March")
    page.get_by_label("Notes").fill("As typed")
    page.get_by_label("Table of sales").set_input_files(large)
    expect(page.get_by_role("alert")).to_have_text("large.csv is too large. A file can have up to 1 MB.")
    page.get_by_label("Table of sales").set_input_files(table)
    expect(page.locator(".file-chosen")).to_contain_text("sales.csv")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_label("Table of sales")).to_be_focused()
    expect(page.get_by_label("Notes")).to_have_value("As typed")
    finds_nothing(page)
    page.set_viewport_size(DESK)
    page.get_by_label("Title").press("Enter")  # starts it, as in any form
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text("March: sales.csv has 399 characters.")).to_be_visible()
    page.get_by_role("link", name="Run again").click()
    expect(page.locator(".file-chosen")).to_contain_text("sales.csv")
    page.get_by_role("button", name="Remove sales.csv").click()
    expect(page.locator(".file-chosen")).to_have_count(0)
    expect(page.get_by_label("Notes")).to_have_value("As typed")


def test_a_long_name_stays_within_the_page(page: Page, site: Site, tmp_path: Path) -> None:
    file = tmp_path / f"{'sales-' * 30}.csv"
    file.write_bytes(b"1")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/workflows/sales.sum/")
    page.get_by_label("Table of sales").set_input_files(file)
    button = page.get_by_role("button", name=re.compile("^Remove sales-"))
    expect(button).to_be_visible()
    box = button.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390


def test_a_file_that_the_site_refuses_costs_nothing(page: Page, site: Site, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    page.goto(f"{site.url}/workflows/sales.sum/")
    page.get_by_label("Title").fill("March")
    page.get_by_label("Table of sales").set_input_files(empty)
    expect(page.get_by_role("alert")).to_contain_text("empty.csv is empty.")
    expect(page.get_by_label("Title")).to_have_value("March")
    finds_nothing(page)


def never_answered(route: Route) -> None:
    """Let a request wait."""


def test_an_upload_that_is_cut_off_says_so(page: Page, site: Site, table: Path) -> None:
    page.goto(f"{site.url}/workflows/sales.sum/")
    page.get_by_label("Title").fill("March")
    page.route("**/upload/", never_answered)
    page.get_by_label("Table of sales").set_input_files(table)
    expect(page.locator(".file-sending").first).to_contain_text("Uploading 400 bytes…")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".file-sending").first).to_contain_text("Still uploading.")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("The upload was cancelled.")
    expect(page.get_by_label("Title")).to_have_value("March")


def test_without_scripts_a_button_uploads_it_and_keeps_the_rest(
    without_scripts: Page, site: Site, table: Path, large: Path
) -> None:
    page = without_scripts
    page.goto(f"{site.url}/workflows/sales.sum/")
    page.get_by_label("Title").fill("March")
    page.get_by_label("Notes").fill("As typed")
    page.get_by_label("Table of sales").set_input_files(large)
    page.get_by_role("button", name="Upload the file for Table of sales").click()
    expect(page.locator(".err")).to_have_text("large.csv is too large. A file can have up to 1 MB.")
    expect(page.get_by_label("Notes")).to_have_value("As typed")
    page.get_by_label("Table of sales").set_input_files(table)
    page.get_by_role("button", name="Upload the file for Table of sales").click()
    expect(page.locator(".file-chosen")).to_contain_text("sales.csv")
    expect(page.locator(".err")).to_have_count(0)
    expect(page.get_by_label("Title")).to_have_value("March")
    page.get_by_label("Price list").set_input_files(table)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator("main")).to_contain_text("sales-2.csv")
