"""Questions of policies in a real browser: they arrive while one looks, are answered, and survive what happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import Site, serving, signed_in
from tests.browser.test_axe import APPROVAL, finds_nothing
from tests.browser.test_first_turn import say
from tests.browser.test_survives import SOON, Standing

pytestmark = pytest.mark.browser

ASKING: dict[str, Any] = {"AGENTSITE_APPS": "tests.browser.asking"}


def picks(form: Locator | Page, field: str, choice: str) -> None:
    """Choose one of the few that stand side by side."""
    form.get_by_role("group", name=re.compile(field, re.IGNORECASE)).get_by_label(choice, exact=True).check()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with an app whose programs ask."""
    with serving(tmp_path_factory.mktemp("asking"), **ASKING) as site:
        yield site


def test_a_form_is_filled_in_refused_and_filled_in_again(page: Page, site: Site) -> None:
    """It arrives by itself and takes no focus. What is wrong is said at its field; the policy's own rule asks again.
    Enter in a field of one line answers.
    """
    say(page, site, "Plan a trip.")
    card = page.locator("article.ask")
    expect(card).to_contain_text("Where should the team go, and for how long?")
    expect(card.get_by_label("City")).not_to_be_focused()
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    card.get_by_label("City").fill("Atlantis")
    card.get_by_label("Nights").fill("400")
    picks(card, "Seat on the train", "window")
    card.get_by_label("Nights").press("Enter")
    expect(card).to_contain_text("Enter a number from 1 to 30.")
    expect(card).to_contain_text("Choose one.")
    expect(card.get_by_label("Nights")).to_be_focused()
    expect(card.get_by_label("City")).to_have_value("Atlantis")
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    card.get_by_label("Nights").fill("3")
    picks(card, "Breakfast", "Yes")
    card.get_by_role("button", name="Answer").click()
    expect(card).to_contain_text("No train goes to Atlantis")
    expect(card.get_by_role("group", name=re.compile("Seat on the train")).get_by_label("window")).to_be_checked()
    card.get_by_label("City").fill("Lisbon")
    card.get_by_label("City").press("Enter")
    expect(page.get_by_text("To Lisbon for 3 nights.")).to_be_visible()
    done = page.locator("details.done")
    expect(done).to_contain_text("Answered by you in the chat")
    done.locator("summary").first.click()
    expect(done.locator("dl.fields")).to_contain_text("Seat on the train")
    finds_nothing(page)


def test_one_click_answers_where_the_choices_are_few(page: Page, site: Site) -> None:
    say(page, site, "Send the letter.")
    page.get_by_role("group", name="Answers").get_by_role("button", name="Tomorrow").click()
    expect(page.get_by_text("Sent: Tomorrow.")).to_be_visible()
    expect(page.get_by_label("Message")).to_be_focused()


def test_choices_are_marked_or_picked_from_a_list(page: Page, site: Site) -> None:
    say(page, site, "Book a way.")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("article.ask")).to_contain_text("Choose one")
    expect(page.locator("article.ask .esc")).to_have_text("U+202E")
    finds_nothing(page)
    page.get_by_label("Not at all").check()
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("Booked: Not at all.")).to_be_visible()
    say(page, site, "Choose a city.")
    page.get_by_label("Your answer").select_option(label="Porto")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("Chosen: Porto.")).to_be_visible()


@pytest.mark.parametrize("typed", ["words", "choice"])
def test_whoever_was_second_is_told_and_keeps_their_words(
    page: Page, context: BrowserContext, site: Site, typed: str
) -> None:
    """Answered under the typing, in the admin: what was said and by whom stands there, and what was typed."""
    address = say(page, site, "Settle the invoice." if typed == "words" else "Book a way.")
    if typed == "words":
        page.get_by_label("Your answer").fill("Put it against the next one.")
    else:
        page.get_by_label("By plane in the morning").check()
    admin = context.new_page()
    admin.goto(f"{site.url}/admin/conversations/approval/")
    admin.get_by_role("row").last.get_by_role("link").first.click()
    expect(admin.locator(APPROVAL)).to_be_visible()
    finds_nothing(admin, within=APPROVAL)
    if typed == "words":
        admin.get_by_label("Your answer").fill("Send it back.")
    else:
        admin.get_by_label("Not at all").check()
    admin.get_by_role("button", name="Answer").click()
    done = page.locator("details.done")
    expect(done).to_contain_text("Answered by you in the admin")
    expect(done).to_contain_text("Send it back." if typed == "words" else "Not at all")
    kept = "Put it against the next one." if typed == "words" else "By plane in the morning"
    expect(page.locator(".meanwhile pre")).to_have_text([kept])
    assert address in page.url


def test_what_was_typed_stays_where_the_policy_asks_somebody_else_again(
    page: Page, context: BrowserContext, site: Site
) -> None:
    """Another window gave an answer that was refused: the form has that now, and what was typed here is beside it."""
    address = say(page, site, "Plan a trip.")
    page.get_by_label("City").fill("Typed with care")
    other = context.new_page()
    other.goto(address)
    other.get_by_label("City").fill("Atlantis")
    other.get_by_label("Nights").fill("3")
    picks(other, "Seat on the train", "aisle")
    picks(other, "Breakfast", "No")
    other.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("No train goes to Atlantis")).to_be_visible()
    expect(page.get_by_label("City")).to_have_value("Atlantis")
    expect(page.locator(".meanwhile pre")).to_have_text(["Typed with care"])
    expect(other.locator(".meanwhile")).to_have_count(0)


def test_on_the_sheet_typing_marks_the_answer(page: Page, site: Site) -> None:
    say(page, site, "Ask me everything.")
    page.get_by_role("button", name="Answer all…").click()
    expect(page.get_by_role("heading", name="Decide 3 actions")).to_be_visible()
    finds_nothing(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    rows = page.locator(".sheet > ol > li")
    rows.nth(0).get_by_label("Your answer").fill("Blue Note")
    rows.nth(1).get_by_label("Green").check()
    rows.nth(2).get_by_label("City").fill("Porto")
    expect(page.get_by_role("button", name="Answer 3")).to_be_visible()
    page.get_by_role("button", name="Answer 3").click()
    expect(page.get_by_text("Not decided.")).to_be_visible()
    rows.nth(2).get_by_label("Nights").fill("2")
    rows.nth(2).get_by_label("Nights").press("Enter")  # on a sheet of several, that decides nothing
    picks(rows.nth(2), "Seat on the train", "aisle")
    picks(rows.nth(2), "Breakfast", "No")
    page.get_by_role("button", name="Answer 1").click()
    expect(page.get_by_text("Blue Note, green, to Porto.")).to_be_visible()


def test_without_scripts_a_question_is_answered_all_the_same(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context.new_page(), site)
    address = say(page, site, "Book the trip.")
    for _ in range(200):
        page.goto(address)
        if page.get_by_role("button", name="Approve").count():
            break
    page.get_by_role("button", name="Approve").click()
    for _ in range(200):
        page.goto(address)
        if page.get_by_text("Booked.", exact=True).count():
            break
    expect(page.get_by_text("Booked.", exact=True)).to_be_visible()
    context.close()


def test_a_question_outlives_every_process(browser: Browser, tmp_path: Path) -> None:
    """All of the site is killed while it waits; the answer is taken by the next one, and the program goes on."""
    with serving(tmp_path, **(ASKING | SOON)) as site:
        standing = Standing(tmp_path, site)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = signed_in(context.new_page(), site)
        page.set_default_timeout(45_000)
        say(page, site, "Settle the invoice.")
        page.get_by_label("Your answer").fill("Send it back.")
        standing.kill_all()
        with standing.again():
            expect(page.get_by_label("Your answer")).to_have_value("Send it back.")
            page.get_by_role("button", name="Answer").click()
            expect(page.get_by_text("They are told: Send it back.")).to_be_visible(timeout=45_000)
            expect(page.locator("details.done")).to_contain_text(re.compile("Answered by you in the chat"))
            assert standing.is_clean()
        context.close()
