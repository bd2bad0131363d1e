"""axe finds nothing on the pages, at the widths of a desk and a phone, light and dark.

Left out is what others drew: unfold's frame around the admin's pages (no main landmark, icons outside of regions), and
Swagger UI, which shows the API (grey on grey, buttons in buttons).
"""

from __future__ import annotations

import json
import re
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

APPROVAL, APPROVALS, START = "#content-main.approval", "#result_list", "#content-main.start"
CATALOGUE = "#content-main.catalogue"
"""What is ours of the admin's pages."""
OPTIONS = {"resultTypes": ["violations"], "preload": False}  # which would ask for our style sheets at wrong addresses
WIDTHS = {"desk": 1280, "phone": 320}
Theme = Literal["light", "dark"]


def finds_nothing(page: Page, address: str = "", within: str | None = None) -> None:
    """Look at a page (this one where no address is given) in both themes and at both widths."""
    if address:
        page.goto(address)
    page.wait_for_load_state()  # a form that was just sent may be here before its style sheets
    faults = []
    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        for name, width in WIDTHS.items():
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.set_viewport_size({"width": width, "height": 900})
            found = Axe().run(page, within, OPTIONS).response["violations"]
            faults += [
                f"{name}, {theme}: {fault['id']} ({fault['help']}): {node['html'][:200]} {node['any'][:1]}"
                for fault in found
                for node in fault["nodes"]
            ]
            wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            faults += [f"{name}, {theme}: it scrolls sideways"] if wide else []
    assert not faults, f"{page.url}\n" + json.dumps(faults, indent=1)


@pytest.fixture
def stranger(browser: Browser) -> Page:
    """Somebody who is not signed in."""
    return browser.new_context().new_page()


def test_the_pages_of_somebody_who_is_not_signed_in(stranger: Page, site: Site) -> None:
    finds_nothing(stranger, f"{site.url}/login/")
    stranger.get_by_label("User name").fill("nobody")
    stranger.get_by_label("Password").fill("wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_text("Wrong user name or password.")).to_be_visible()
    finds_nothing(stranger)
    for path in ("password/", "password/sent/", "password/changed/", "password/MQ/no-such/"):
        finds_nothing(stranger, f"{site.url}/{path}")


def test_the_pages_of_an_account(page: Page, site: Site) -> None:
    finds_nothing(page, f"{site.url}/account/")
    page.get_by_label("Name", exact=True).fill("Nightly")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("Choose what the key may do.")).to_be_visible()
    page.get_by_role("checkbox", name="models with any OpenAI client").check()
    finds_nothing(page)
    page.get_by_label("Models", exact=True).fill("gpt-5.5")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("it will not be shown again")).to_be_visible()
    finds_nothing(page)
    page.get_by_role("button", name="Revoke Nightly").first.click()
    expect(page.get_by_text("The key Nightly was revoked")).to_be_visible()
    finds_nothing(page)
    finds_nothing(page, f"{site.url}/account/password/")
    page.get_by_label("New password").fill("short")
    page.get_by_label("Confirm password").fill("short")
    page.get_by_label("Current password").fill(site.password)
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text("too short")).to_be_visible()
    finds_nothing(page)


def test_the_pages_that_say_what_went_wrong(stranger: Page, site: Site) -> None:
    finds_nothing(stranger, f"{site.url}/no/such/page/")
    stranger.goto(f"{site.url}/login/")
    stranger.evaluate("document.querySelector('[name=csrfmiddlewaretoken]').remove()")
    stranger.get_by_label("User name").fill("nobody")
    stranger.get_by_label("Password").fill("wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("heading", name="Your request was not accepted")).to_be_visible()
    finds_nothing(stranger)


def test_the_menu_of_the_person(page: Page, site: Site) -> None:
    """It opens by a key, its choice of colours takes effect at once, and it closes where one leaves it."""
    page.goto(f"{site.url}/new/")
    button, menu = page.get_by_role("button", name=site.username), page.locator("#me")
    button.focus()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    menu.get_by_role("button", name="Dark").click()
    expect(menu.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_chat(page: Page, site: Site) -> None:
    finds_nothing(page, f"{site.url}/new/")
    say(page, site, "Hello there.")
    expect(page.locator(".turn .prose").first).to_be_visible()
    finds_nothing(page)


def test_the_list(page: Page, site: Site) -> None:
    """On a phone it stands alone: it has the page's landmark and heading, and is what the first link leads to."""
    say(page, site, "Hello there.")
    finds_nothing(page, f"{site.url}/")
    for name, heading, link in (
        ("desk", "New conversation", "Skip to the conversation"),
        ("phone", "Conversations", "Skip to the conversations"),
    ):
        page.set_viewport_size({"width": WIDTHS[name], "height": 900})
        page.goto(f"{site.url}/")
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        page.evaluate("document.body.tabIndex = -1; document.body.focus()")  # where the field has not taken the focus
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=link, exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(":target")).to_be_visible()


def test_what_is_decided_in_the_chat(page: Page, site: Site) -> None:
    address = say(page, site, "Look around, then say the day.")
    card = page.locator("article.ask").first
    expect(card).to_be_visible()
    finds_nothing(page)
    for form in ("Edit", "Reject…"):
        page.goto(address)
        page.locator("article.ask").first.get_by_text(form, exact=True).click()
        expect(page.locator("article.ask textarea").first).to_be_visible()
        finds_nothing(page)
    finds_nothing(page, f"{address}decide/")
    page.goto(address)
    page.locator("article.ask").first.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".done").first).to_be_visible()
    finds_nothing(page)


def test_the_first_page_of_the_admin(page: Page, site: Site) -> None:
    """What is asked while it is open comes to stand there."""
    finds_nothing(page, f"{site.url}/admin/", START)
    asking = page.context.new_page()
    say(asking, site, "Ask on the first page.")
    expect(page.locator(START).get_by_text("echo on the first page")).to_be_visible()
    finds_nothing(page, within=START)


def test_the_approvals_in_the_admin(page: Page, site: Site) -> None:
    say(page, site, "Tidy up.")
    expect(page.locator("article.ask").first).to_be_visible()
    finds_nothing(page, f"{site.url}/admin/conversations/approval/", APPROVALS)
    page.get_by_role("row", name=re.compile("rm -rf notes")).get_by_role("link").first.click()
    expect(page.locator(APPROVAL)).to_be_visible()
    finds_nothing(page, within=APPROVAL)


def test_the_catalogue_of_tools(page: Page, site: Site) -> None:
    """The list, also with nothing in it, and a tool that was used."""
    say(page, site, "Ask for the catalogue.")
    finds_nothing(page, f"{site.url}/admin/conversations/tooluse/", CATALOGUE)
    page.get_by_role("searchbox", name="Search").fill("xyzzy")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No tools match.")).to_be_visible()
    finds_nothing(page, within=CATALOGUE)
    page.get_by_role("link", name="Show all").first.click()
    page.get_by_role("link", name="shell.run").click()
    expect(page.get_by_role("heading", name="Run a command")).to_be_visible()
    finds_nothing(page, within=CATALOGUE)
