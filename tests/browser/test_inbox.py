"""The inbox in a real browser: decided by keyboard alone, live in every window, and on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import PASSWORD, Site, serving, signed_in
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser

WORLD = f"""
import json
from datetime import timedelta
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from tests.browser.inbox import asked
kim = User.objects.create_user("kim", password={PASSWORD!r}, first_name="Kim")
kim.user_permissions.add(Permission.objects.get(codename="decide_approval"))
jonas = User.objects.create_user("jonas", first_name="Jonas", password={PASSWORD!r})
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on which Kim, who is not staff, decides for others."""
    with serving(tmp_path_factory.mktemp("inbox")) as site:
        shell(site, WORLD)
        yield Site(site.url, site.environment, "kim")


def shell(site: Site, code: str) -> str:
    done = run("manage.py", "shell", "--verbosity", "0", "--command", code, environment=site.environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(site: Site, *commands: str, owner: str = "jonas", **more: object) -> list[int]:
    """Let these commands wait, one expiring after the other."""
    code = f"""
import json
from tests.browser.inbox import asked
print(json.dumps(asked({owner!r}, {commands!r}, **{more!r})))
"""
    pks: list[int] = json.loads(shell(site, code))
    return pks


def decided(site: Site, *pks: int) -> list[str]:
    """What became of these approvals."""
    code = f"""
import json
from conversations.models import Output
print(json.dumps([Output.objects.get(pk=pk).gate for pk in {list(pks)!r}]))
"""
    gates: list[str] = json.loads(shell(site, code))
    return gates


@pytest.fixture(autouse=True)
def _nothing_waits(place: Site) -> Iterator[None]:
    yield
    shell(place, "from tests.browser.inbox import clear; clear()")


@pytest.fixture
def kim(context: BrowserContext, place: Site) -> Page:
    """Kim's window, with the inbox open."""
    return signed_in(context.new_page(), place)


def inbox(page: Page, site: Site, more: str = "") -> Page:
    page.goto(f"{site.url}/approvals/{more}")
    return page


def card(page: Page, text: str) -> None:
    """Wait for the card of this command."""
    expect(page.locator(".inbox-item .cmd")).to_contain_text(text)


def press_until_focused(page: Page, key: str, selector: str) -> None:
    page.keyboard.press(key)
    expect(page.locator(selector)).to_be_focused()


def test_ten_are_decided_by_keyboard_alone(kim: Page, place: Site) -> None:
    """Approved, rejected with a reason, and edited. No key decides but Enter on a button that has the focus."""
    pks = ask(place, *(f"echo number-{n}." for n in range(10)))
    inbox(kim, place)
    expect(kim).to_have_title("(10) Approvals · Agentsite")
    for number in range(10):
        card(kim, f"number-{number}.")
        if number == 3:
            kim.keyboard.press("r")
            expect(kim.locator(".inbox-item textarea")).to_be_focused()
            kim.keyboard.type("Not on a Friday, ajkero?")
            kim.keyboard.press("Tab")
            kim.keyboard.press("Enter")
        elif number == 6:
            kim.keyboard.press("e")
            expect(kim.locator(".inbox-item textarea")).to_be_focused()
            kim.keyboard.press("ControlOrMeta+a")
            kim.keyboard.type("echo edited")
            kim.keyboard.press("Tab")
            kim.keyboard.press("Tab")
            expect(kim.get_by_role("button", name="Approve as edited")).to_be_focused()
            kim.keyboard.press("Enter")
        else:
            press_until_focused(kim, "a", ".inbox-item .btn.primary")
            kim.keyboard.press("Enter")
    expect(kim.locator(".nothing-open")).to_contain_text("you decide it here.")
    expect(kim).to_have_title("Approvals · Agentsite")
    assert decided(place, *pks) == ["approved"] * 3 + ["rejected"] + ["approved"] * 6


def test_keys_move_and_none_decides(kim: Page, place: Site) -> None:
    pks = ask(place, "echo first", "echo second", "echo third")
    inbox(kim, place)
    card(kim, "echo first")
    kim.keyboard.press("j")
    card(kim, "echo second")
    expect(kim).to_have_url(f"{place.url}/approvals/{pks[1]}/")
    kim.keyboard.press("j")
    card(kim, "echo third")
    kim.keyboard.press("j")
    kim.keyboard.press("k")
    card(kim, "echo second")
    kim.go_back()
    card(kim, "echo third")
    kim.keyboard.press("?")
    expect(kim.locator("#keys")).to_be_visible()
    kim.keyboard.press("Escape")
    expect(kim.locator("#keys")).to_be_hidden()
    kim.keyboard.press("/")
    expect(kim.get_by_label("Search approvals")).to_be_focused()
    kim.keyboard.type("jar echo second")
    expect(kim.locator(".inbox-list")).to_contain_text("No approval matches.")
    kim.get_by_label("Search approvals").fill("second")
    expect(kim.locator(".row")).to_have_count(1)
    card(kim, "echo second")
    expect(kim).to_have_url(f"{place.url}/approvals/{pks[1]}/?q=second")
    assert decided(place, *pks) == ["pending"] * 3


def test_the_other_window_follows(kim: Page, place: Site) -> None:
    """What is asked, decided or answered elsewhere shows in each window; what was typed there stays readable."""
    ask(place, "echo first", "echo second")
    other = kim.context.new_page()
    for page in (kim, other):
        inbox(page, place)
        card(page, "echo first")
    other.keyboard.press("r")
    other.locator(".inbox-item textarea").fill("I am typing this.")
    kim.get_by_role("button", name="Approve and run").click()
    card(kim, "echo second")
    expect(other.locator(".inbox-item")).to_contain_text("Approved by you in the inbox")
    expect(other.locator(".inbox-item .meanwhile")).to_contain_text("I am typing this.")
    expect(other.locator(".row")).to_have_count(1)
    expect(other).to_have_title("(1) Approvals · Agentsite")
    other.keyboard.press("j")
    card(other, "echo second")
    ask(place, "echo late")
    for page in (kim, other):
        expect(page.locator(".row")).to_have_count(2)
        card(page, "echo second")
        expect(page.locator(".nav .count")).to_contain_text("2")


def test_what_was_decided_elsewhere_before_the_page_knew_is_said(kim: Page, place: Site) -> None:
    """Nothing that was typed is lost."""
    (pk,) = ask(place, "echo first")
    kim.route_web_socket(re.compile("/ws/"), lambda _socket: None)  # nothing comes of a socket
    inbox(kim, place)
    card(kim, "echo first")
    kim.keyboard.press("r")
    kim.locator(".inbox-item textarea").fill("I am typing this.")
    other = kim.context.new_page()
    inbox(other, place)
    other.get_by_role("button", name="Approve and run").click()
    expect(other.locator(".nothing-open")).to_be_visible()
    kim.get_by_role("button", name="Reject", exact=True).click()
    shown = kim.locator(".inbox-item")
    expect(shown).to_contain_text("this is already approved")
    expect(shown).to_contain_text("I am typing this.")
    assert decided(place, pk) == ["approved"]


def test_a_second_click_is_not_for_the_next_card(kim: Page, place: Site) -> None:
    pks = ask(place, "echo first", "echo second")
    inbox(kim, place)
    card(kim, "echo first")
    button = kim.get_by_role("button", name="Approve and run").bounding_box()
    assert button
    kim.mouse.click(button["x"] + 20, button["y"] + 10)
    card(kim, "echo second")
    kim.mouse.down(click_count=2)
    kim.mouse.up(click_count=2)
    kim.keyboard.press("j")  # nothing was sent that this would wait for
    card(kim, "echo second")
    expect(kim.locator(".row")).to_have_count(1)
    assert decided(place, *pks) == ["approved", "pending"]


def test_several_are_selected_and_decided_on_one_sheet(kim: Page, place: Site) -> None:
    pks = ask(place, "echo first", "echo second", "echo third")
    inbox(kim, place)
    for box in kim.get_by_role("checkbox", name="Select Run a command").all()[:2]:
        box.check()
    kim.get_by_role("button", name="Decide 2 together").click()
    expect(kim.get_by_role("heading", name="Decide 2 actions")).to_be_visible()
    kim.get_by_role("button", name="Edit action 2").click()
    expect(kim.locator("textarea").filter(has_text="echo second")).to_be_visible()
    kim.get_by_label("Command").fill("echo edited")
    row = kim.locator(".sheet > ol > li", has=kim.locator(".cmd", has_text="echo first"))
    row.get_by_text("Reject", exact=True).click()
    kim.get_by_label("Reason for all that you reject").fill("No.")
    kim.get_by_role("button", name="Reject 1, approve 1").click()
    expect(kim.locator(".told")).to_have_text("2 actions are decided.")
    card(kim, "echo third")
    assert decided(place, *pks) == ["rejected", "approved", "pending"]


def test_the_inbox_on_a_phone(browser: Browser, place: Site) -> None:
    """Six rows on a screen, then the card; back leads to the list."""
    ask(place, *(f"echo number-{n}. {'and so on ' * 30}" for n in range(8)))
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = signed_in(context.new_page(), place)
    inbox(page, place)
    expect(page.locator(".inbox-item")).to_be_hidden()
    rows = page.locator(".row").all()
    sixth = rows[5].bounding_box()
    assert sixth
    assert sixth["y"] + sixth["height"] <= 844
    rows[1].locator("a").tap()
    card(page, "number-1.")
    expect(page.locator(".inbox-side")).to_be_hidden()
    page.get_by_role("link", name="Next").tap()
    card(page, "number-2.")
    page.get_by_role("button", name="Approve and run").tap()
    card(page, "number-3.")
    page.get_by_role("link", name="All approvals").tap()
    expect(page.locator(".row")).to_have_count(7)
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide
    context.close()


def test_a_tablet_shows_the_list_or_a_card(browser: Browser, place: Site) -> None:
    """Beside the conversations there is no room for both. No key works on a card that is not shown."""
    ask(place, "echo first", "echo second")
    context = browser.new_context(viewport={"width": 820, "height": 1100}, has_touch=True)
    page = signed_in(context.new_page(), place)
    inbox(page, place)
    expect(page.locator(".inbox-item")).to_be_hidden()
    expect(page.locator(".keys [data-key]:visible")).to_have_text(["J K next, previous"])
    page.keyboard.press("e")
    page.keyboard.press("j")
    card(page, "echo second")
    expect(page.locator(".inbox-side")).to_be_hidden()
    expect(page.locator(".inbox-item .acts-form")).to_have_count(0)
    page.get_by_role("link", name="All approvals").tap()
    page.locator(".row > a").first.tap()
    card(page, "echo first")
    page.get_by_role("link", name="Next").tap()
    card(page, "echo second")
    page.get_by_role("link", name="All approvals").tap()
    page.set_viewport_size({"width": 1024, "height": 768})
    card(page, "echo second")
    expect(page.locator(".inbox-item")).to_be_visible()
    context.close()


def test_without_a_mouse_the_boxes_are_shown(browser: Browser, place: Site) -> None:
    """Where nothing can point at a row, the boxes do not wait for it."""
    ask(place, "echo first")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, has_touch=True, is_mobile=True)
    page = signed_in(context.new_page(), place)
    inbox(page, place)
    box = page.get_by_role("checkbox", name="Select Run a command")
    expect(box).to_have_css("opacity", "1")
    box.check()
    expect(page.get_by_role("button", name="Decide the selected")).to_be_visible()
    context.close()


def test_only_keys_that_do_something_are_named(kim: Page, place: Site) -> None:
    """Of a card that waits, of one that is decided, and of none."""
    ask(place, "echo first")
    inbox(kim, place)
    card(kim, "echo first")
    named = kim.locator(".keys [data-key]:visible")
    moves, decides = "J K next, previous", "A to Approve, Enter to decide"
    expect(named).to_have_text([moves, decides, "E edit", "R reject"])
    kim.get_by_role("button", name="Approve and run").click()
    expect(kim.locator(".nothing-open")).to_be_visible()
    expect(named).to_have_count(0)
    inbox(kim, place, "?show=decided")
    card(kim, "echo first")
    expect(named).to_have_text([moves])


def test_axe_finds_nothing(kim: Page, place: Site) -> None:
    pks = ask(place, "echo first", "echo second")
    finds_nothing(kim, f"{place.url}/approvals/")
    for more in ("", "?as=edit", "?as=reject"):
        finds_nothing(kim, f"{place.url}/approvals/{pks[0]}/{more}")
    finds_nothing(kim, f"{place.url}/approvals/?whose=mine&q=nowhere")
    finds_nothing(kim, f"{place.url}/approvals/together/?ids={pks[0]},{pks[1]}")
    kim.get_by_role("button", name="Edit action 1").click()
    expect(kim.get_by_label("Command")).to_be_visible()
    finds_nothing(kim)
    kim.set_viewport_size({"width": 1280, "height": 900})
    inbox(kim, place)
    kim.get_by_role("button", name="Approve and run").click()
    card(kim, "echo second")
    finds_nothing(kim, f"{place.url}/approvals/?show=decided")
