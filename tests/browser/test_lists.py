"""Forms of cards in which things are ticked and chosen: that counts as typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

POST = {"name": "letter_post", "arguments": {"to": ["Ann"], "sender": "Ben", "urgent": False}}
TURNS = {"Post it.": [{"calls": [POST]}, {"text": "Done."}]}

CHANGES: dict[str, tuple[Callable[[Locator], object], list[str]]] = {
    "a box is ticked": (lambda form: group(form, "To").get_by_label("Cleo").check(), ["Cleo: ticked"]),
    "a box is unticked": (lambda form: group(form, "To").get_by_label("Ann").uncheck(), ["Ann: not ticked"]),
    "another is chosen": (lambda form: form.get_by_label("Sender").select_option(label="Dora"), ["Dora"]),
    "one of two is chosen": (lambda form: group(form, "Urgent").get_by_label("Yes").check(), ["Yes"]),
}
"""What somebody does in the form, and what is kept of it if the card is decided elsewhere."""


def group(form: Locator, name: str) -> Locator:
    return form.get_by_role("group", name=re.compile(f"^{name}"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose agent posts letters."""
    with serving(tmp_path_factory.mktemp("posting"), TURNS, AGENTSITE_APPS="tests.browser.posting") as site:
        yield site


@pytest.mark.parametrize(("change", "kept"), CHANGES.values(), ids=CHANGES)
def test_what_was_ticked_or_chosen_is_not_lost(
    context: BrowserContext, page: Page, site: Site, change: Callable[[Locator], object], kept: list[str]
) -> None:
    """By one Escape, or by whoever decides elsewhere; taken back by hand, nothing is left that could be lost."""
    address = say(page, site, "Post it.")
    page.locator(".ask").get_by_role("link", name="Edit").click()
    form = page.locator(".acts-form")
    group(form, "To").get_by_label("Ben").press("Escape")
    expect(form).to_have_count(0)
    page.locator(".ask").get_by_role("link", name="Edit").click()
    change(form)
    page.keyboard.press("Escape")
    expect(form.get_by_text("Press Escape again to discard your changes.")).to_be_visible()
    other = context.new_page()
    other.goto(address)
    other.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".meanwhile pre")).to_have_text(kept)


def test_a_box_that_is_as_it_was_is_no_change(page: Page, site: Site) -> None:
    say(page, site, "Post it.")
    page.locator(".ask").get_by_role("link", name="Edit").click()
    form = page.locator(".acts-form")
    group(form, "To").get_by_label("Fay").check()
    group(form, "To").get_by_label("Fay").uncheck()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
