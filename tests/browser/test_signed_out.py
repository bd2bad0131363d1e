"""Whoever is signed out is told, also in the admin; whoever is not, is not; and nobody finds another's unsent words."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.agentsite.processes import run, wait_for
from tests.browser.conftest import PASSWORD, Site, signed_in
from tests.browser.test_first_turn import say
from tests.browser.test_sockets import MADE

pytestmark = pytest.mark.browser
APPROVALS = "/admin/conversations/approval/"


def another(site: Site, username: str) -> Site:
    """The same site, for an administrator of this name."""
    environment = {**site.environment, "DJANGO_SUPERUSER_USERNAME": username}
    made = run("manage.py", "createsuperuser", "--noinput", "--email", "", environment=environment)
    assert made.returncode == 0, made.stderr
    return Site(site.url, environment, username)


def has(page: Page) -> tuple[int, int]:
    """How many sockets this page has made, and how many of them live."""
    made, live = page.evaluate("[made.length, live().length]")
    return made, live


def sign_out(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/new/")
    page.get_by_role("button", name=site.username).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("User name")).to_be_visible()


def test_an_admin_page_says_that_one_is_signed_out(context: BrowserContext, page: Page, site: Site) -> None:
    """It asks no more, and leads to where one signs in and comes back."""
    page.clock.install()
    page.add_init_script(MADE)
    page.goto(f"{site.url}{APPROVALS}")
    wait_for(lambda: has(page)[1] == 1)
    sign_out(context.new_page(), site)
    line = page.locator("#meanwhile")
    expect(line).to_contain_text("You are signed out")
    made, _ = has(page)
    page.clock.run_for(120_000)
    assert has(page) == (made, 0)
    line.get_by_role("link", name="Sign in again").click()
    page.locator("[name=username]").fill(site.username)
    page.locator("[name=password]").fill(site.password)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url(f"{site.url}{APPROVALS}")
    wait_for(lambda: has(page)[1] == 1)
    expect(line).to_have_count(0)


def test_an_admin_page_says_that_it_is_not_for_one_any_more(page: Page, site: Site) -> None:
    page.add_init_script(MADE + "played = (url) => refused(url, 4403)")
    page.goto(f"{site.url}{APPROVALS}")
    expect(page.locator("#meanwhile")).to_contain_text("no longer have access")


def test_a_page_says_that_one_is_signed_out(context: BrowserContext, page: Page, site: Site) -> None:
    """What was typed stays there."""
    say(page, site, "Hello there")
    page.get_by_label("Message").fill("Not yet sent.")
    sign_out(context.new_page(), site)
    strip = page.locator("#offline")
    expect(strip).to_contain_text("You are signed out.")
    expect(page.get_by_label("Message")).to_have_value("Not yet sent.")
    strip.get_by_role("button", name="Reload").click()
    expect(page.get_by_label("User name")).to_be_visible()


def test_a_new_password_signs_out_no_other_page_of_the_browser(context: BrowserContext, site: Site) -> None:
    """Their sockets end with the old session, and go on under the new one (I9)."""
    bea = another(site, "bea")
    chat, admin, account = (context.new_page() for _ in range(3))
    signed_in(chat, bea)
    for page in (chat, admin):
        page.add_init_script(MADE)
    address = say(chat, bea, "Hello there")
    admin.goto(f"{site.url}{APPROVALS}")
    wait_for(lambda: (has(chat), has(admin)) == ((2, 2), (1, 1)))
    account.goto(f"{site.url}/account/password/")
    account.get_by_label("Current password").fill(PASSWORD)
    for label in ("New password", "Confirm password"):
        account.get_by_label(label, exact=True).fill("another battery staple")
    account.get_by_role("button", name="Change").click()
    wait_for(lambda: (has(chat), has(admin)) == ((4, 2), (2, 1)))
    account.goto(address)
    account.get_by_label("Message").fill("Tidy up.")
    account.get_by_label("Message").press("Enter")
    expect(chat.locator(".ask")).to_contain_text("rm -rf notes")
    expect(chat.locator("#offline")).to_be_hidden()
    expect(admin.get_by_role("row", name=re.compile("rm -rf notes")).first).to_be_visible()
    expect(admin.locator("#meanwhile")).to_have_count(0)


def test_who_signs_in_next_does_not_find_what_was_typed(page: Page, site: Site) -> None:
    """In the same tab: an unsent message is its writer's."""
    cleo = another(site, "cleo")
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("About my salary")
    sign_out(page, site)
    signed_in(page, cleo)
    page.goto(f"{site.url}/new/")
    expect(page.get_by_label("Message")).to_have_value("")
    assert "salary" not in page.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_label("Message").fill("About lunch")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("About lunch")
