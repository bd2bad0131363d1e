"""The password again in a real browser: asked for where it is needed, kept for ten minutes, and by keyboard alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from tests.browser.conftest import PASSWORD, Site, serving, signed_in
from tests.browser.test_axe import finds_nothing
from tests.browser.test_inbox import ask, decided, inbox, shell

pytestmark = pytest.mark.browser

WORLD = f"""
from django.contrib.auth.models import Permission, User
kim = User.objects.create_user("kim", password={PASSWORD!r}, first_name="Kim")
kim.user_permissions.add(Permission.objects.get(codename="decide_approval"))
"""
WAITED = """
from importlib import import_module
from django.conf import settings
from django.contrib.sessions.models import Session
store = import_module(settings.SESSION_ENGINE).SessionStore
for row in Session.objects.all():
    session = store(session_key=row.session_key)
    session["password_entered"] -= 600
    session.save()
"""
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that asks for the password of whoever approves a call of high risk."""
    with serving(tmp_path_factory.mktemp("again"), AGENTSITE_REAUTHENTICATE="high") as site:
        shell(site, WORLD)
        yield Site(site.url, site.environment, "kim")


@pytest.fixture(autouse=True)
def _nothing_waits(place: Site) -> Iterator[None]:
    yield
    shell(place, "from tests.browser.inbox import clear; clear()")


@pytest.fixture
def kim(context: BrowserContext, place: Site) -> Page:
    """Kim's window, ten minutes after she signed in."""
    page = signed_in(context.new_page(), place)
    shell(place, WAITED)
    return page


def conversation_of(site: Site, pk: int) -> str:
    code = f"""
import json
from conversations.models import Output
print(json.dumps(Output.objects.get(pk={pk}).conversation.get_absolute_url()))
"""
    return f"{site.url}{json.loads(shell(site, code))}"


def test_in_the_chat_by_keyboard_alone(kim: Page, place: Site) -> None:
    """A wrong one is said at the field; after the right one, the next card asks for none."""
    first, second = ask(place, "echo first", owner="kim")[0], ask(place, "echo second", owner="kim")[0]
    kim.goto(conversation_of(place, first))
    password = kim.get_by_label("Your password")
    expect(password).to_be_visible()
    kim.locator("body").press("Escape")
    kim.keyboard.press("a")
    expect(password).to_be_focused()
    kim.keyboard.type("wrong")
    kim.keyboard.press("Enter")
    expect(kim.locator(".ask .err")).to_contain_text("this is not your password. 4 attempts left.")
    expect(password).to_be_focused()
    assert decided(place, first) == ["pending"]
    kim.keyboard.type(PASSWORD)
    kim.keyboard.press("Enter")
    expect(kim.locator(".ask")).to_have_count(0)
    assert decided(place, first) == ["approved"]
    expect(kim.locator("body")).to_have_attribute("data-verified", "")
    kim.goto(conversation_of(place, second))
    expect(kim.get_by_role("button", name="Approve and run")).to_be_visible()
    expect(password).to_be_hidden()
    kim.get_by_role("button", name="Approve and run").click()
    expect(kim.locator(".ask")).to_have_count(0)
    assert decided(place, second) == ["approved"]


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_in_the_inbox_the_next_card_asks_for_none(kim: Page, place: Site, size: ViewportSize) -> None:
    """What is pressed without it brings the card back with the field in focus."""
    first, second = ask(place, "echo first", "echo second", owner="kim")
    kim.set_viewport_size(size)
    inbox(kim, place, f"{first}/")
    password, approve = kim.get_by_label("Your password"), kim.get_by_role("button", name="Approve and run")
    approve.click()
    expect(kim.locator(".solo .err")).to_contain_text("Nothing was decided: enter your password.")
    expect(password).to_be_focused()
    finds_nothing(kim)
    kim.set_viewport_size(size)
    password.fill(PASSWORD)
    approve.click()
    expect(kim.locator(".inbox-item .cmd")).to_contain_text("echo second")
    expect(password).to_be_hidden()
    approve.click()
    expect(kim.locator(".inbox-list")).to_contain_text("Nothing is waiting for you.")
    assert decided(place, first, second) == ["approved", "approved"]


def test_the_field_is_back_when_the_time_is_over(kim: Page, place: Site) -> None:
    """In a window that stays open, as its own clock tells."""
    ask(place, "echo first", "echo second", owner="kim")
    kim.clock.install()
    inbox(kim, place)
    password = kim.get_by_label("Your password")
    password.fill(PASSWORD)
    kim.get_by_role("button", name="Approve and run").click()
    expect(kim.locator(".inbox-item .cmd")).to_contain_text("echo second")
    expect(password).to_be_hidden()
    kim.clock.fast_forward("10:01")
    expect(password).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_sheet_asks_once_and_only_for_what_is_approved(kim: Page, place: Site, size: ViewportSize) -> None:
    yes, no = ask(place, "echo yes", "echo no", owner="kim")
    kim.set_viewport_size(size)
    inbox(kim, place, f"together/?ids={yes},{no}")
    password = kim.get_by_label("Your password")
    kim.locator(f"#s-{no}").get_by_text("Reject", exact=True).click()
    kim.locator(f"#s-{no} textarea").fill("Not that.")
    expect(password).to_be_hidden()
    kim.locator(f"#s-{yes}").get_by_text("Approve", exact=True).click()
    expect(password).to_be_visible()
    password.fill("wrong")
    kim.get_by_role("button", name="Approve 1, reject 1").click()
    expect(kim.locator(".sheet .err")).to_contain_text("this is not your password.")
    expect(password).to_be_focused()
    expect(kim.locator(f"#s-{no} textarea")).to_have_value("Not that.")
    finds_nothing(kim)
    kim.set_viewport_size(size)
    assert decided(place, yes, no) == ["pending", "pending"]
    password.fill(PASSWORD)
    kim.get_by_role("button", name="Approve 1, reject 1").click()
    expect(kim).to_have_url(f"{place.url}/approvals/?done={yes}%2C{no}")
    assert decided(place, yes, no) == ["approved", "rejected"]


def test_g_and_a_lead_to_the_inbox_from_every_page(kim: Page, place: Site) -> None:
    ask(place, "echo first", owner="kim")
    kim.goto(f"{place.url}/workflows/")
    kim.keyboard.press("g")
    kim.keyboard.press("a")
    expect(kim).to_have_url(f"{place.url}/approvals/")
    kim.keyboard.press("?")
    expect(kim.locator("#keys")).to_contain_text("come here from every page")
    kim.keyboard.press("Escape")
    kim.goto(f"{place.url}/approvals/?show=decided")
    kim.keyboard.press("g")
    kim.keyboard.press("a")
    expect(kim).to_have_url(f"{place.url}/approvals/")
