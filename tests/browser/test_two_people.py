"""Two people, one after the other, in the same browser: no page of the first acts as the second."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import Site, signed_in
from tests.browser.test_first_turn import say
from tests.browser.test_signed_out import another, sign_out

pytestmark = pytest.mark.browser
DRAFT = "About my salary"
ALL = "from conversations.models import Conversation as C; print(C.objects.values_list('owner__username'))"


@pytest.fixture(scope="module")
def mara(site: Site) -> Site:
    return another(site, "mara")


def takes_over(context: BrowserContext, site: Site, mara: Site) -> Page:
    """Another tab, in which the first one signs out and the second one signs in."""
    tab = context.new_page()
    sign_out(tab, site)
    return signed_in(tab, mara)


def owners(site: Site) -> str:
    """Who has conversations."""
    asked = run("manage.py", "shell", "--verbosity", "0", "--command", ALL, environment=site.environment)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


@pytest.mark.parametrize("chat", [False, True])
def test_a_draft_of_the_first_is_not_sent_as_the_second(
    context: BrowserContext, page: Page, site: Site, mara: Site, chat: bool
) -> None:
    """The page says so and keeps it, and goes on once the first is signed in again."""
    if chat:
        say(page, site, "Hello there")
        expect(page.locator("[data-send]")).to_be_enabled()
    else:
        page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill(DRAFT)
    tab = takes_over(context, site, mara)
    page.evaluate("dispatchEvent(new Event('focus'))")  # one comes back to the window
    strip = page.locator("#offline")
    expect(strip).to_contain_text("Somebody else is signed in in this browser now.")
    expect(strip.get_by_role("button", name="Reload")).to_be_visible()
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_label("Message")).to_have_value(DRAFT)
    expect(tab.locator(".convs")).not_to_contain_text(DRAFT)
    assert "mara" not in owners(site)
    sign_out(tab, mara)
    signed_in(tab, site)
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(strip).to_be_hidden()
    page.get_by_label("Message").press("Enter")
    expect(page.locator(".said .typed").last).to_have_text(DRAFT)


def test_a_request_before_the_page_knows_is_refused(context: BrowserContext, site: Site, mara: Site) -> None:
    """By a script and by the browser itself; the page then says what its sockets had not told it."""
    page = signed_in(context.new_page(), site)
    page.route_web_socket(re.compile("/ws/"), lambda _socket: None)  # nothing comes of a socket
    page.goto(f"{site.url}/new/")
    account = context.new_page()
    account.route_web_socket(re.compile("/ws/"), lambda _socket: None)
    account.goto(f"{site.url}/account/")
    takes_over(context, site, mara)
    page.get_by_label("Message").fill(DRAFT)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#problem")).to_contain_text("You are signed in as mara in this browser now")
    expect(page.get_by_label("Message")).to_have_value(DRAFT)
    account.get_by_label("First name").fill("Not Mara")
    account.get_by_role("button", name="Save", exact=True).click()
    expect(account.get_by_role("heading", name="Somebody else is signed in")).to_be_visible()
    account.go_back()
    account.reload()
    expect(account.get_by_label("First name")).to_have_value("")
    assert "mara" not in owners(site)
