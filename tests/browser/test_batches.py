"""A workflow for each line of a table, in the browser: with one bad line, one that fails and one that waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser
PARCELS = "/workflows/parcel.send/batch/"
TABLE = "Article,Pieces,Labels on the box\natlas,3,Fragile; This side up\ng,2,\nglobe,many,"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the workflows of the company in the pictures, where the demo model answers."""
    apps = {"AGENTSITE_APPS": "tests.browser.screenshots.app"}
    with serving(tmp_path_factory.mktemp("batches"), None, "ann", **apps) as site:
        yield site


def test_from_the_form_to_the_results_while_the_page_follows(page: Page, site: Site, tmp_path: Path) -> None:
    page.goto(f"{site.url}/workflows/parcel.send/")
    page.get_by_role("link", name="Run for each line of a table").click()
    finds_nothing(page)
    page.get_by_role("textbox", name="The table").fill(TABLE)
    page.get_by_role("button", name="Check the table").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 3, Pieces: Enter a whole number.")
    finds_nothing(page)
    page.get_by_role("button", name="Leave out the invalid lines").click()
    expect(page.get_by_label("Lines that you left out")).to_have_value(re.compile("globe,many"))
    page.get_by_role("textbox", name="The table").fill("article\n" + "\n".join(["atlas"] * 6))
    page.get_by_role("button", name="Check again").click()
    finds_nothing(page)
    page.get_by_role("button", name="Start 6 runs").click()
    page.wait_for_url(re.compile(r"/workflows/batches/\d+/$"))
    expect(page.locator("#counts")).to_have_text("0 of 6 done, 5 wait for you, 1 to come")
    finds_nothing(page)
    batch = page.url
    page.get_by_role("link", name="Decide line 1").click()
    page.locator("article.ask").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".came")).to_contain_text("tomorrow, 9:00")
    page.goto(batch)
    expect(page.locator("#counts")).to_have_text("1 of 6 done, 5 wait for you")
    page.get_by_role("button", name="Stop what runs").click()
    expect(page.locator("#counts")).to_have_text("1 of 6 done, 5 stopped")
    finds_nothing(page)
    with page.expect_download() as taking:
        page.get_by_role("link", name="Results").click()
    taking.value.save_as(tmp_path / "results.csv")
    rows = (tmp_path / "results.csv").read_text("utf-8-sig").splitlines()
    assert (rows[0], rows[1][:18]) == ("line,article,state,result,reason", "1,atlas,completed,")
    page.goto(f"{site.url}/workflows/batches/")
    expect(page.locator(".runs")).to_contain_text("1 of 6 done, 5 stopped")
    page.goto(batch)
    page.get_by_role("link", name="Delete this batch").click()
    finds_nothing(page)
    page.get_by_role("button", name="Delete this batch").click()
    expect(page.get_by_text("You have not run anything for each line")).to_be_visible()
    page.goto(f"{site.url}/workflows/runs/")
    expect(page.locator(".runs li")).to_have_count(6)
    page.get_by_role("link", name="Batches").click()
    page.wait_for_url("**/workflows/batches/")
    finds_nothing(page)


def test_a_line_that_fails_says_why_on_the_page(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/workflows/month.close/batch/")
    page.get_by_role("textbox", name="The table").fill("month\n2025-10\n2025-11")
    page.get_by_role("button", name="Check the table").click()
    page.get_by_role("button", name="Start 2 runs").click()
    expect(page.locator("#counts")).to_have_text("0 of 2 done, 2 failed")
    expect(page.locator(".each-line")).to_contain_text("The bank has no statement for 2025-11 yet.")
    assert page.locator("#standing").get_attribute("hx-get") is None


def test_it_does_all_of_it_without_a_script(browser: Browser, page: Page, site: Site) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state()).new_page()
    plain.goto(f"{site.url}{PARCELS}")
    plain.get_by_role("textbox", name="The table").fill("article\natlas\nglobe")
    plain.get_by_role("button", name="Check the table").click()
    plain.get_by_role("button", name="Start 2 runs").click()
    plain.get_by_role("link", name="Reload").click()
    plain.get_by_role("button", name="Stop what runs").click()
    expect(plain.locator("#counts")).to_contain_text("0 of 2 done")
    plain.context.close()
