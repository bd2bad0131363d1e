"""A newcomer's first minute: the demo model, every tool that ships, a card approved, one rejected, one edited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Site, serving, signed_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site as `make run` starts it: with the demo model."""
    with serving(tmp_path_factory.mktemp("demo")) as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, demo: Site) -> Page:
    """A window of somebody who begins."""
    page = signed_in(context.new_page(), demo)
    page.goto(f"{demo.url}/new/")
    return page


def say(page: Page, text: str) -> Locator:
    """Say something and wait until it stands there; returns the turn that it begins."""
    before = page.locator(".exchange").count()
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()
    turn = page.locator(".exchange").nth(before)
    expect(turn).to_be_visible()
    return turn


def ended(turn: Locator) -> Locator:
    """The turn, once it has come to its end."""
    expect(turn.locator("footer.turn-foot")).to_contain_text("round")
    return turn


def test_help_says_what_can_be_asked_for(page: Page) -> None:
    """Everything that the help names can be typed as it stands there."""
    page.get_by_role("button", name="help").click()
    turn = ended(page.locator(".exchange"))
    expect(turn).to_contain_text("not a language model")
    listed = turn.locator(".prose li code").all_text_contents()
    assert {"list the files", "run ls -la", "chart: Jan 3, Feb 5, Mar 4"} <= set(listed)
    turn = ended(say(page, listed[0]))
    expect(turn.locator("details.steps summary").first).to_contain_text("1 step")


def test_a_line_of_the_help_is_put_into_the_message_field(page: Page) -> None:
    """It stands below what was typed, is not sent, and does not come back once it was."""
    page.get_by_role("button", name="help").click()
    turn = ended(page.locator(".exchange"))
    field = page.get_by_label("Message")
    turn.get_by_role("link", name="run ls -la").click()
    expect(field).to_have_value("run ls -la")
    expect(field).to_be_focused()
    expect(page.locator(".exchange")).to_have_count(1)
    page.get_by_role("link", name="list the files").click()
    expect(field).to_have_value("list the files")
    expect(field).to_be_focused()
    field.fill("Please")
    page.get_by_role("link", name="search for milk").click()
    expect(field).to_have_value("Please\nsearch for milk")
    field.press("Enter")
    ended(page.locator(".exchange").nth(1))
    page.reload()
    expect(field).to_have_value("")


def test_the_three_things_to_try(page: Page, demo: Site) -> None:
    """Each runs by one click: one reads, one asks, one draws."""
    for index, seen in ((0, "details.steps"), (1, "article.ask"), (2, "figure, svg")):
        page.goto(f"{demo.url}/new/")
        page.locator(".tries button").nth(index).click()
        expect(page.locator(".exchange").locator(seen).first).to_be_visible()


def test_a_file_is_written_as_it_was_shown(page: Page) -> None:
    """The card shows the file line by line; approved, it is there and can be read and changed."""
    turn = say(page, "write notes.md: buy milk")
    card = turn.locator("article.ask")
    expect(card.locator(".diff")).to_contain_text("buy milk")
    expect(card).to_contain_text("notes.md")
    card.get_by_role("button", name=re.compile("^Approve")).click()
    expect(ended(turn).locator(".prose").last).to_contain_text("I wrote notes.md")
    turn = say(page, "in notes.md replace milk with bread")
    diff = turn.locator("article.ask .diff")
    expect(diff).to_contain_text("buy milk")
    expect(diff).to_contain_text("buy bread")
    turn.get_by_role("button", name=re.compile("^Approve")).click()
    ended(turn)
    expect(ended(say(page, "read notes.md")).locator(".prose").last).to_contain_text("buy bread")


def test_a_command_is_rejected_then_approved_as_edited(page: Page) -> None:
    """The reason reaches the model; what runs is what the person made of the command (S34, S35)."""
    turn = say(page, "run rm -rf /")
    turn.get_by_role("link", name="Reject").click()
    turn.get_by_label("Reason (sent to the agent)").fill("Never that.")
    turn.get_by_role("button", name="Reject", exact=True).click()
    expect(ended(turn).locator(".prose").last).to_contain_text("Never that.")
    turn = say(page, "run echo one")
    turn.get_by_role("link", name="Edit").click()
    page.get_by_label("Command", exact=True).fill("echo two")
    turn.get_by_role("button", name="Approve as edited").click()
    expect(ended(turn).locator(".prose").last).to_contain_text("two")


def test_a_chart_and_a_report(page: Page) -> None:
    """The chart is drawn with its figures; the report is downloaded as it was written."""
    turn = ended(say(page, "chart: Jan 3, Feb 5, Mar 4"))
    expect(turn.locator("svg .bar")).to_have_count(3)
    expect(turn.get_by_role("cell", name="5", exact=True)).to_be_visible()
    turn = ended(say(page, "line chart of sales: Jan 3, Feb 5, Mar 4"))
    expect(turn.get_by_role("img", name=re.compile("Sales"))).to_be_visible()
    turn.get_by_text("All labels and figures", exact=True).click()
    expect(turn.get_by_role("cell", name="5", exact=True)).to_be_visible()
    turn = ended(say(page, "write a report about milk: We need more of it."))
    with page.expect_download() as started:
        turn.get_by_role("link", name=re.compile("^Download")).click()
    assert started.value.suggested_filename.endswith(".md")
    assert "We need more of it." in Path(started.value.path()).read_text()


def test_a_file_is_given_and_a_skill_reads_it(page: Page, tmp_path: Path) -> None:
    """What was attached lies in the workspace; a skill's tool is there once the skill is active (S18)."""
    sales = tmp_path / "sales.csv"
    sales.write_text("month,sold\nJan,3\nFeb,5\n")
    page.get_by_label("Attach files").set_input_files(sales)
    turn = ended(say(page, "read it"))
    expect(turn.locator(".said")).to_contain_text("sales.csv")
    expect(turn.locator(".prose").last).to_contain_text("Jan,3")
    ended(say(page, "activate the skill numbers"))
    turn = ended(say(page, "summarise sales.csv"))
    expect(turn.locator("details.steps summary").first).to_contain_text("sales.csv")
    expect(turn.get_by_role("cell", name="sold")).to_be_visible()
