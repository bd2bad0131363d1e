"""What helps to decide, in a real browser: on a desk and on a phone, and what somebody changes while they type."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, ViewportSize, expect

from tests.browser.conftest import PASSWORD, Site, serving, signed_in
from tests.browser.test_axe import APPROVAL, finds_nothing
from tests.browser.test_inbox import decided, inbox, shell

pytestmark = pytest.mark.browser

WORLD = f"""
from django.contrib.auth.models import Permission, User
from conversations.approvals.decisions import decide
from conversations.models import Output
from conversations.prompts.start import cancel_prompt
from tests.browser.inbox import asked
kim = User.objects.create_user("kim", password={PASSWORD!r}, first_name="Kim", is_staff=True)
kim.user_permissions.add(Permission.objects.get(codename="decide_approval"))
more = {{"undoable": "It cannot be undone."}}
for command in ("ls", "make deploy HOST=web-1"):
    done = Output.objects.get(pk=asked("kim", [command], **more)[0])
    decide(done.pk, kim, "approve", digest=done.digest, via="inbox")
    cancel_prompt(done.prompt_id, kim)
print(asked("kim", ["make deploy HOST=web-2"], **more)[0])
"""
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, int]]:
    """A site on which Kim has approved two commands, and is asked about a third."""
    with serving(tmp_path_factory.mktemp("helps")) as site:
        pk = int(shell(site, WORLD))
        yield Site(site.url, site.environment, "kim"), pk


@pytest.fixture
def kim(context: BrowserContext, world: tuple[Site, int]) -> Page:
    return signed_in(context.new_page(), world[0])


def addresses(kim: Page, site: Site, pk: int) -> list[str]:
    """The pages with the card: the inbox, the chat, the sheet and the admin."""
    inbox(kim, site, f"{pk}/")
    chat = kim.locator('[data-opens="conversation"]').get_attribute("href")
    assert chat
    chat = f"{site.url}{chat.partition('#')[0]}"
    admin = f"{site.url}/admin/conversations/approval/{pk}/change/"
    return [f"{site.url}/approvals/{pk}/", chat, f"{chat}decide/", admin]


def test_on_a_desk_it_stands_open_and_on_a_phone_it_folds(kim: Page, world: tuple[Site, int]) -> None:
    site, pk = world
    for address in addresses(kim, site, pk):
        kim.set_viewport_size(DESK)
        kim.goto(address)
        differs = kim.get_by_text("Differs from the last call that you approved")
        expect(differs).to_contain_text("was make deploy HOST=web-1")
        expect(differs).to_be_visible()
        expect(kim.get_by_text("The last 2 calls like this: 2 approved unchanged")).to_be_visible()
        expect(kim.get_by_text("It cannot be undone.")).to_be_visible()
        folded = kim.get_by_text("What helps to decide")
        expect(folded).to_be_hidden()
        kim.set_viewport_size(PHONE)
        expect(differs).to_be_hidden()
        folded.click()
        expect(differs).to_be_visible()


def test_axe_finds_nothing_on_a_card_with_all_of_it(kim: Page, world: tuple[Site, int]) -> None:
    site, pk = world
    for address in addresses(kim, site, pk):
        within = APPROVAL if "/admin/" in address else None
        finds_nothing(kim, address, within)
        finds_nothing(kim, f"{address}?{'as=edit' if 'approval' in address else f'edit={pk}'}", within)


def typed(kim: Page) -> Locator:
    """The form of the edit, with another command typed into it."""
    field = kim.get_by_label("Command", exact=True)
    field.fill("make deploy HOST=web-3")
    changes = kim.locator(".live-changes")
    expect(changes).to_contain_text("What you changed")
    expect(changes.locator("del mark")).to_have_text("2")
    expect(changes.locator("ins mark")).to_have_text("3")
    expect(field).to_be_focused()
    return changes


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_what_is_typed_is_compared_while_it_is_typed(
    kim: Page, world: tuple[Site, int], viewport: ViewportSize
) -> None:
    site, pk = world
    kim.set_viewport_size(viewport)
    for address in addresses(kim, site, pk):
        kim.goto(address)
        button = kim.get_by_role("button", name=re.compile("^Edit"))
        opener = button.or_(kim.get_by_role("link", name="Edit", exact=True))
        opener.click()
        expect(opener).to_have_count(0)
        kim.wait_for_load_state()  # where the form is a page of its own, its scripts come after it
        changes = typed(kim)
        finds_nothing(kim, within=APPROVAL if "/admin/" in address else None)
        kim.set_viewport_size(viewport)
        kim.get_by_label("Command", exact=True).fill("make deploy HOST=web-2")
        expect(changes).to_be_empty()
    assert decided(site, pk) == ["pending"]


def test_an_edited_call_says_afterwards_what_was_changed(kim: Page, world: tuple[Site, int]) -> None:
    site, pk = world
    inbox(kim, site, f"{pk}/?as=edit")
    typed(kim)
    kim.get_by_role("button", name="Approve as edited").click()
    expect(kim.locator(".told")).to_contain_text("Edited and approved by you")
    inbox(kim, site, f"{pk}/")
    expect(kim.get_by_text("What the edit changed")).to_be_visible()
    expect(kim.locator(".changes ins mark")).to_have_text("3")
