"""An edit in a real browser: in the chat it is approved, and what is typed in the admin meanwhile is not lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say, waiting

pytestmark = pytest.mark.browser


def test_an_edited_command_runs_and_who_typed_elsewhere_is_told(
    page: Page, context: BrowserContext, site: Site
) -> None:
    """Enter in a field decides nothing; the form gives the command as it was; the model's version stays to be seen."""
    say(page, site, "Edit this.")
    page.locator(".ask").get_by_role("link", name="Edit").click()
    command = page.get_by_label("Command", exact=True)
    expect(command).to_be_focused()
    assert command.input_value() == "echo one\n\n  echo two"
    page.get_by_label("Timeout seconds").press("Enter")
    admin = context.new_page()
    waiting(admin, site, "echo one")
    admin.get_by_role("link", name="Reject…").click()
    admin.get_by_label("Reason").fill("I am typing")
    page.bring_to_front()
    command.fill("echo three\n\n  echo four")
    page.get_by_role("button", name="Approve as edited").click()
    done = page.locator("details.done")
    expect(done).to_contain_text("Edited and approved by you in the chat")
    expect(page.get_by_text("Edited it is.")).to_be_visible()
    expect(page.get_by_label("Message")).to_be_focused()
    done.locator("summary").first.click()
    expect(done.locator("pre.mono")).to_have_text(re.compile("three\nfour"))
    done.locator(".was summary").click()
    expect(done.locator(".was")).to_contain_text("echo two")
    expect(admin.locator("#meanwhile")).to_contain_text("Edited and approved by you")
    expect(admin.get_by_label("Reason")).to_have_value("I am typing")


def test_what_was_typed_stays_where_another_window_decided(page: Page, context: BrowserContext, site: Site) -> None:
    """The card is decided under the typing: who did it is told, and the words can still be taken along."""
    address = say(page, site, "Edit this.")
    page.locator(".ask").get_by_role("link", name="Edit").click()
    page.get_by_label("Command", exact=True).fill("echo typed with care")
    other = context.new_page()
    other.goto(address)
    other.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator("details.done")).to_contain_text("Approved by you")
    kept = page.locator(".meanwhile")
    expect(kept).to_contain_text("decided elsewhere in the meantime")
    expect(kept.locator("pre")).to_have_text(["echo typed with care"])
    expect(page.get_by_text("Edited it is.")).to_be_visible()
    expect(kept).to_be_visible()
    expect(other.locator(".meanwhile")).to_have_count(0)


def test_what_was_refused_in_the_admin_stays_and_can_be_approved(
    page: Page, context: BrowserContext, site: Site
) -> None:
    """The socket of the page looks anew when it opens: neither what was typed nor why it was refused is lost by it."""
    say(page, site, "Edit this in the admin.")
    expect(page.locator(".ask")).to_be_visible()
    admin = context.new_page()
    admin.add_init_script(LOOKED)
    waiting(admin, site, "echo five")
    admin.get_by_role("link", name="Edit", exact=True).click()
    admin.get_by_label("Command", exact=True).fill("echo six")
    admin.get_by_label("Timeout seconds").fill("9999")
    decide_edited(admin)
    looked_anew(admin)
    expect(admin.get_by_text("Enter a number from 1 to 590.")).to_be_visible()
    expect(admin.get_by_label("Timeout seconds")).to_have_value("9999")
    admin.get_by_label("Timeout seconds").fill("500")
    decide_edited(admin)
    looked_anew(admin)
    expect(admin.locator(".holds")).to_contain_text("at most 500 seconds")
    expect(admin.get_by_label("Command", exact=True)).to_have_value("echo six")
    expect(admin.locator("#meanwhile")).to_have_count(0)
    decide_edited(admin)
    expect(admin.get_by_text("Edited and approved by you: Run a command (echo six).")).to_be_visible()
    expect(page.get_by_text("Edited there it is.")).to_be_visible()


LOOKED = """(() => {
  const fetched = window.fetch;
  window.looked = 0;
  window.fetch = async (...asked) => {
    const answer = await fetched(...asked);
    setTimeout(() => { window.looked += 1; }, 300);
    return answer;
  };
})()"""
"""Counts how often a page has looked at itself anew, once what it saw is in its place."""


def decide_edited(admin: Page) -> None:
    admin.get_by_role("button", name="Approve as edited").click()
    admin.wait_for_load_state()


def looked_anew(admin: Page) -> None:
    admin.wait_for_function("window.looked > 0")


def test_a_card_alone_on_its_page_leads_back_to_the_conversation(page: Page, site: Site) -> None:
    """There are no turns on that page for an answer to be merged into."""
    address = say(page, site, "Ask on a page alone.")
    card = page.locator(".ask")
    expect(card).to_be_visible()
    number = str(card.get_attribute("id")).removeprefix("a-")
    page.goto(f"{site.url}/approvals/{number}/card/")
    page.get_by_role("button", name="Approve and run").click()
    page.wait_for_url(re.compile(re.escape(address)))
    expect(page.get_by_text("Alone it was.")).to_be_visible()


def test_the_sheet_says_what_its_button_does(page: Page, site: Site) -> None:
    """Every action in full; the sum follows the verdicts, and each gets its own."""
    address = say(page, site, "Three at once.")
    expect(page.locator(".ask")).to_have_count(3)
    page.get_by_role("button", name="Approve all").click()
    expect(page.get_by_role("button", name="Approve 3")).to_be_visible()
    second = page.locator(".sheet > ol > li").nth(1)
    expect(second.get_by_label("Reason (sent to the agent)")).to_be_hidden()
    second.get_by_text("Reject", exact=True).click()
    second.get_by_label("Reason (sent to the agent)").fill("Not b.")
    page.get_by_role("button", name="Approve 2, reject 1").click()
    page.wait_for_url(re.compile(re.escape(address)))
    expect(page.get_by_text("All three seen.")).to_be_visible()
    expect(page.locator("details.done", has_text="Rejected by you")).to_contain_text("echo b")
    expect(page.get_by_text("\u201cNot b.\u201d")).to_be_visible()
