"""Whole walks by keyboard alone: a member's, from the first sign-in to an administrator's no, and an administrator's
with a model server that overloads, breaks off, refuses and goes away.

What is clicked elsewhere is reached by Tab here, and pressed with Enter, as a person without a mouse does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import PASSWORD, Site, serving
from tests.wire.script import Refusal, Reply
from tests.wire.server import WireServer

pytestmark = pytest.mark.browser
TABS_MOST = 150
"""More than any page has places to stop at: whoever needs more is lost."""
GIVES_UP_MS = 120_000.0
"""A model server that is away is asked for a minute."""
OVERLOADED = Reply(refusal=Refusal(503, "", "Overloaded.", {"retry-after-ms": "10"}))
KEY = "a-key-that-is-not-accepted"


def reach(page: Page, target: Locator) -> None:
    """Press Tab until this element has the focus."""
    expect(target).to_be_visible()
    for _ in range(TABS_MOST):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {target}.")


def press(page: Page, target: Locator) -> None:
    """Reach an element and press Enter on it."""
    reach(page, target)
    page.keyboard.press("Enter")


def sign_in(page: Page, site: Site, name: str, address: str = "/") -> None:
    """Open an address and sign in: the first field has the focus."""
    page.goto(f"{site.url}{address}")
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}{address}")


def say(page: Page, text: str) -> Locator:
    """Send a message; return its turn."""
    before = page.locator(".exchange").count()
    reach(page, page.get_by_label("Message"))
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    turn = page.locator(".exchange").nth(before)
    expect(turn).to_be_visible()
    return turn


@pytest.fixture
def another(browser: Browser) -> Iterator[Page]:
    """A window of a browser of its own, for a second person."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_a_member_from_the_first_sign_in_to_an_administrators_no(
    context: BrowserContext, another: Page, tmp_path: Path
) -> None:
    """Mara asks, a card waits, Ann says no with a reason in the admin, and Mara reads both it and what came of it."""
    with serving(tmp_path) as site:
        create = f"User.objects.create_user('mara', password='{PASSWORD}', first_name='Mara')"
        made = run(
            "manage.py",
            "shell",
            "-c",
            f"from django.contrib.auth.models import User; {create}",
            environment=site.environment,
        )
        assert made.returncode == 0, made.stderr
        page = context.new_page()
        sign_in(page, site, "mara")
        turn = say(page, "run echo hello")
        card = turn.locator("article.ask")
        expect(card).to_contain_text("echo hello")
        reach(page, card.get_by_role("button", name=re.compile("^Approve")))

        sign_in(another, site, "ann", "/admin/")
        press(another, another.get_by_role("link", name=re.compile("^All approvals")))
        row = another.get_by_role("row", name=re.compile("echo hello"))
        press(another, row.get_by_role("link").first)
        press(another, another.get_by_role("link", name="Reject…"))
        reach(another, another.get_by_label("Reason"))
        another.keyboard.type("Not on a Friday.")
        press(another, another.get_by_role("button", name="Reject", exact=True))
        expect(another.get_by_text("Rejected by you").first).to_be_visible()

        expect(card).to_have_count(0)
        expect(turn.locator(".done")).to_contain_text("Rejected by")
        expect(turn.locator(".prose").last).to_contain_text("Not on a Friday.")
        press(page, turn.locator(".done > summary"))
        expect(turn.locator(".done")).to_contain_text("echo hello")
        expect(say(page, "list the files").locator("details.steps summary").first).to_be_visible()
        page.close()  # before the site, whose pages complain that it is gone


@dataclass
class Server:
    """What the scripted model server does now."""

    reply: Reply

    def __call__(self, body: object) -> Reply:
        return self.reply


def test_an_administrator_with_a_model_server_in_trouble(context: BrowserContext, tmp_path: Path) -> None:
    """Each failure says what happened and where to set it; Ask again is there where it helps, and then it does."""
    server = Server(OVERLOADED)
    with WireServer(server) as wire, serving(tmp_path, OPENAI_BASE_URL=wire.url, OPENAI_API_KEY=KEY) as site:
        page = context.new_page()
        sign_in(page, site, "ann")

        turn = say(page, "Say hello.")  # overloaded
        panel = turn.get_by_role("alert")
        expect(panel).to_contain_text("The model server is overloaded or not working. It was asked 7 times in")
        expect(panel).to_contain_text("AGENTSITE_MODEL_FALLBACK")
        raw = panel.get_by_text("HTTP 503: Overloaded.")
        expect(raw).to_be_hidden()
        press(page, panel.locator("details.raw > summary"))
        expect(raw).to_be_visible()
        server.reply = Reply("Hello again.")
        press(page, panel.get_by_role("button", name="Ask again"))
        expect(page.locator(".prose").last).to_contain_text("Hello again.")

        cut = "An answer that is long enough to be cut in its middle."
        server.reply = Reply(cut, pause_seconds=1, break_after=6)  # breaks off
        turn = say(page, "Say something long.")
        expect(turn.locator(".prose")).to_contain_text("An answer")
        server.reply = Reply("Whole this time.")
        expect(turn.locator(".prose").last).to_contain_text("Whole this time.")

        refused = f"Incorrect API key provided: {KEY}."
        server.reply = Reply(refusal=Refusal(401, "invalid_api_key", refused))  # refuses
        turn = say(page, "Say it once more.")
        panel = turn.get_by_role("alert")
        expect(panel).to_contain_text("The model server does not accept this site's key.")
        expect(panel).to_contain_text("OPENAI_API_KEY")
        expect(panel.locator(".btn.primary")).to_have_count(0)
        press(page, panel.locator("details.raw > summary"))
        expect(panel).to_contain_text("Incorrect API key provided: [key].")
        expect(page.locator("body")).not_to_contain_text(KEY)

        wire.stop()  # goes away
        turn = say(page, "Are you there?")
        panel = turn.get_by_role("alert")
        expect(panel).to_contain_text(
            "The model server could not be reached. It was asked 7 times", timeout=GIVES_UP_MS
        )
        expect(panel).to_contain_text("OPENAI_BASE_URL")
        reach(page, panel.get_by_role("button", name="Ask again"))

        page.goto(f"{site.url}/admin/")
        press(page, page.get_by_role("link", name=re.compile("could not be reached")))
        expect(page.get_by_text("model_error").first).to_be_visible()
        page.close()
