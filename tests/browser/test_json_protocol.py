"""A model that asks for tools in text: nobody ever sees that text, whatever moment they look (S45..S52, R9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_first_turn import say
from tests.browser.turns import PARAGRAPHS

pytestmark = pytest.mark.browser

SAMPLED = """
const raw = /\\{\\s*"?tool|"?(?:parameters|terminate)"?\\s*:|shell_run|```/;
window.found = () => JSON.parse(sessionStorage.found || '{"raw": [], "shown": []}');
new MutationObserver(() => {
  const text = document.body?.textContent ?? "", shown = document.getElementById("turns")?.textContent ?? "";
  const all = found();
  const hit = text.match(raw);
  if (hit) all.raw.push(text.slice(Math.max(hit.index - 100, 0), hit.index + 100));
  if (shown && shown !== all.shown.at(-1)) all.shown.push(shown);
  sessionStorage.found = JSON.stringify(all);
}).observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
"""
"""Keeps what the page ever shows of turns, and what of it is a call as text: looked for at each change of the page,
before anybody can see it; kept over the page's own reloads.
"""
SLOWLY = 0.06


def called(command: str) -> str:
    """The text by which a model asks for a command."""
    return json.dumps({"tool": "shell_run", "parameters": {"command": command}, "terminate": False}, indent=2)


def turn(text: str) -> list[dict[str, Any]]:
    return [{"text": text, "pause_seconds": SLOWLY}]


FIRST = "I look at the calendar **first**, and then I tell."
AFTER = "With that I know the day."
TURNS = {
    "Say the day.": turn(called("echo it is Friday")),
    "Say the day, and say how.": turn(f"{PARAGRAPHS}{FIRST}\n\n```json\n{called('echo still Friday')}\n```\n\n{AFTER}"),
    "Say the day, badly.": turn(f"{FIRST}\n\n```json\n{called('echo')[:-1]}, oops\n```"),
    # After a result, or after a call that could not be read:
    "*": turn(f"{PARAGRAPHS}It is **Friday**, says the calendar."),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose model knows no tool calls."""
    with serving(tmp_path_factory.mktemp("json"), TURNS, AGENTSITE_MODEL_API="json") as site:
        yield site


@pytest.fixture
def sampled(context: BrowserContext, page: Page) -> Page:
    """A window of which each state is kept."""
    context.add_init_script(SAMPLED)
    return page


def states(page: Page) -> list[str]:
    """What the turns ever said, in order. Fails where a call was seen as text."""
    found = page.evaluate("found()")
    assert found["raw"] == []
    shown: list[str] = found["shown"]
    return shown


def on_its_way(states: list[str], end: str) -> list[str]:
    """Those in which a long text is shown, but not its end."""
    return [text for text in states if "paragraph number 1" in text and end not in text]


def approved(page: Page, command: str) -> None:
    card = page.get_by_role("article", name="Run a command")
    expect(card).to_contain_text(command)
    card.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text("says the calendar.")).to_be_visible()
    expect(page.get_by_text(re.compile("Approved by you"))).to_be_visible()


def test_a_call_is_a_card_and_never_text(sampled: Page, site: Site) -> None:
    """From the first letter of the answer to the last, and after a reload: a card, its result, the final answer."""
    say(sampled, site, "Say the day.")
    approved(sampled, "echo it is Friday")
    assert on_its_way(states(sampled), "says the calendar."), "it came as a whole: nothing was seen before its end"
    sampled.reload()
    expect(sampled.get_by_text("says the calendar.")).to_be_visible()
    states(sampled)


def test_what_is_said_around_a_call_is_shown_without_it(sampled: Page, site: Site) -> None:
    """The prose streams up to the fence and stays when the card comes; what follows the fence comes with the card."""
    say(sampled, site, "Say the day, and say how.")
    approved(sampled, "echo still Friday")
    for words in (FIRST.replace("**", ""), AFTER):
        expect(sampled.locator(".prose", has_text=words)).to_have_count(1)
    assert on_its_way(states(sampled), "then I tell.")


def test_an_attempt_that_cannot_be_read_is_not_shown_either(sampled: Page, site: Site) -> None:
    """The model is told what was wrong, and answers anew."""
    say(sampled, site, "Say the day, badly.")
    expect(sampled.get_by_text("says the calendar.")).to_be_visible()
    states(sampled)
