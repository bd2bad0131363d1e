"""Approve and remember in a real browser: said in words first, used, seen and revoked; on a phone too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the demo model, which writes the files that it is asked for."""
    with serving(tmp_path_factory.mktemp("grants")) as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, demo: Site) -> Page:
    return signed_in(context.new_page(), demo)


def opens_form(page: Page) -> None:
    page.get_by_role("link", name="Approve and remember…").click()
    expect(page.get_by_text("This allows")).to_be_visible()


def goes_on(page: Page, text: str) -> None:
    """Send another message in this conversation."""
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def below(page: Page, folder: str) -> None:
    """Choose: a path below this folder, whatever its content."""
    page.get_by_label("Calls like this one").check()
    path, content = (page.locator(".condition", has_text=re.compile(f"^\\s*{name}")) for name in ("path", "content"))
    path.get_by_role("combobox").select_option("starts_with")
    path.get_by_label("Which value").fill(folder)
    content.get_by_role("combobox").select_option("any")


def says_below(page: Page, folder: str) -> None:
    expect(page.locator(".grant-words")).to_contain_text(f"if path starts with “{folder}” and content may be anything")


def test_a_grant_is_given_from_a_card_used_and_revoked(page: Page, demo: Site) -> None:
    """In one conversation: the second file is written without a question, the third asks again."""
    say(page, demo, "write reports/a.txt: first")
    opens_form(page)
    expect(page.locator(".grant-words")).to_contain_text("if it is exactly this call")
    below(page, "other/")
    expect(page.locator(".grant-words")).to_contain_text("The call that you see here must be allowed too.")
    page.get_by_role("button", name="Approve and remember").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided. Check the marked fields.")
    below(page, "reports/")
    says_below(page, "reports/")
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_role("button", name="Approve and remember").click()
    expect(page.locator(".ask")).to_have_count(0)
    expect(page.get_by_text("Approved by you")).to_be_visible()
    goes_on(page, "write reports/b.txt: second")
    expect(page.get_by_text("Approved by your grant")).to_be_visible()
    expect(page.locator(".ask")).to_have_count(0)
    window = page.context.new_page()
    window.goto(f"{demo.url}/account/grants/")
    expect(window.get_by_text("Used once")).to_be_visible()
    window.get_by_role("button", name=re.compile("^Revoke: Write a file")).click()
    expect(window.get_by_role("status")).to_contain_text("From the next call on, you are asked again.")
    goes_on(page, "write reports/c.txt: third")
    expect(page.locator(".ask")).to_have_count(1)
    expect(page.locator(".ask")).to_contain_text("Your grant for this tool does not cover this call: You revoked it.")


def test_by_keyboard_alone(page: Page, demo: Site) -> None:
    """Escape leaves the form; what was changed goes with a second one. Enter in a field decides nothing."""
    say(page, demo, "write reports/k.txt: keys")
    expect(page.locator(".ask")).to_be_visible()
    page.get_by_role("link", name="Approve and remember…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("This allows")).to_be_visible()
    page.get_by_label("How many times at most").fill("3")
    page.keyboard.press("Enter")
    expect(page.locator(".grant-words")).to_contain_text("at most 3 times")
    page.keyboard.press("Escape")
    expect(page.locator("[data-leaving]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("This allows")).to_have_count(0)
    expect(page.locator(".ask")).to_be_visible()


def test_without_scripts_the_words_come_before_the_decision(browser: Browser, page: Page, demo: Site) -> None:
    say(page, demo, "write reports/plain.txt: plain")
    expect(page.locator(".ask")).to_be_visible()
    state = page.context.storage_state()
    plain = browser.new_context(java_script_enabled=False, storage_state=state).new_page()
    plain.goto(page.url)
    plain.get_by_role("link", name="Approve and remember…").click()
    plain.get_by_label("How many times at most").fill("2")
    plain.get_by_role("button", name="Approve and remember").click()
    expect(plain.get_by_role("alert")).to_contain_text("Read what this would allow, then approve.")
    expect(plain.locator(".grant-words")).to_contain_text("at most 2 times")
    plain.get_by_role("button", name="Approve and remember").click()
    expect(page.get_by_text("Approved by you")).to_be_visible()
    plain.context.close()


def test_on_a_phone_and_for_everybody(browser: Browser, page: Page, demo: Site) -> None:
    """From the inbox, on a narrow screen; axe finds nothing on the form and on the page of grants."""
    say(page, demo, "write reports/phone.txt: small")
    expect(page.locator(".ask")).to_be_visible()
    phone = browser.new_context(viewport={"width": 390, "height": 844}, storage_state=page.context.storage_state())
    small = phone.new_page()
    small.goto(f"{demo.url}/approvals/")
    small.get_by_role("link", name=re.compile("phone[.]txt")).first.click()
    opens_form(small)
    below(small, "reports/p")
    says_below(small, "reports/p")
    finds_nothing(small)
    small.set_viewport_size({"width": 390, "height": 844})
    small.get_by_role("button", name="Approve and remember").click()
    expect(page.get_by_text("Approved by you")).to_be_visible()
    finds_nothing(small, f"{demo.url}/account/grants/")
    phone.close()
