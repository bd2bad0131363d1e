"""From the selector to the history and back to a form, by keyboard: star, run, find the run, run it again changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the workflows of the company in the pictures, where the demo model answers."""
    apps = {"AGENTSITE_APPS": "tests.browser.screenshots.app"}
    with serving(tmp_path_factory.mktemp("history"), None, "ann", **apps) as site:
        yield site


def checked(page: Page) -> None:
    """Check the page as it is for what keeps people from using it."""
    page.wait_for_load_state()  # with its style sheets
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})


def tab_to(page: Page, target: Locator, most: int = 60) -> None:
    """Press Tab until this has the focus."""
    for _ in range(most):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("Tab does not reach it")


def archive(page: Page, name: str) -> None:
    """Fill in the form that is open, start it and wait for its result."""
    page.get_by_label("Name").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_text(f"Archived {name}.")).to_be_visible()


def test_star_run_find_and_run_again_by_keyboard(page: Page, site: Site) -> None:
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url(f"{site.url}/workflows/")
    star = page.locator("[id='star-all-project.archive']")
    tab_to(page, star)
    page.keyboard.press("Enter")
    starred = page.get_by_role("region", name="Starred")
    expect(starred.get_by_role("link", name=re.compile("Archive a project"))).to_be_visible()
    expect(star).to_have_attribute("aria-pressed", "true")
    expect(star).to_be_focused()
    expect(starred).to_contain_text("1 field · can work in a chat of yours")
    checked(page)
    tab_to(page, starred.get_by_role("link", name=re.compile("Archive a project")))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/workflows/project.archive/")
    archive(page, "Harbour")
    page.goto(f"{site.url}/workflows/mail.sum/")
    page.get_by_role("button", name="Start").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))  # and until it is loaded: the result may stand there before its scripts
    expect(page.get_by_text("Eleven mails.")).to_be_visible()

    page.locator("body").press("g")
    page.locator("body").press("w")
    page.wait_for_url(f"{site.url}/workflows/")
    expect(page.locator("[id='flow-project.archive']")).to_contain_text("You ran this")
    tab_to(page, page.locator("header").get_by_role("link", name="Runs"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/workflows/runs/")
    rows = page.locator(".runs > li")
    expect(rows).to_have_count(2)
    tab_to(page, page.get_by_label("Search inputs and results"))
    page.keyboard.type("harbour")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(re.compile(r"q=harbour"))
    expect(page.get_by_label("Search inputs and results")).to_be_focused()
    checked(page)
    mark = rows.get_by_role("button", name=re.compile("Star this run"))
    tab_to(page, mark)
    page.keyboard.press("Enter")
    expect(mark).to_have_attribute("aria-pressed", "true")
    expect(mark).to_be_focused()
    tab_to(page, page.get_by_label("Search inputs and results"), 200)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(rows).to_have_count(2)
    page.get_by_label("Only starred").press("Space")
    expect(rows).to_have_count(1)
    tab_to(page, rows.get_by_role("link", name="Run again"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/again/"))
    expect(page.get_by_label("Name")).to_have_value("Harbour")
    archive(page, "Station")

    page.goto(f"{site.url}/workflows/runs/?workflow=project.archive")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Station")
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("No run matches.")).to_be_visible()


def test_g_and_w_are_letters_while_one_types(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").press_sequentially("gw")
    expect(page.get_by_label("Message")).to_have_value("gw")
    page.locator("body").evaluate("() => document.activeElement.blur()")
    page.keyboard.press("g")
    page.keyboard.press("x")
    page.keyboard.press("w")
    assert page.url == f"{site.url}/new/"
