"""What is no step reaches a page that is open: the kill switch, and what was taken out of a conversation."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser


def manage(site: Site, *command: str) -> None:
    """A command of the site in a process of its own, which can tell the pages nothing itself."""
    made = run("manage.py", *command, environment=site.environment)
    assert made.returncode == 0, made.stderr


def test_the_kill_switch_and_a_redaction_show_without_a_reload(page: Page, site: Site) -> None:
    """The strip comes and goes, and what was said is replaced; what is typed meanwhile stays."""
    address = say(page, site, "Hello, I am swordfish.")
    expect(page.locator("#turns").get_by_text("Hello.", exact=True)).to_be_visible()
    page.evaluate("window.neverReloaded = true")
    page.get_by_label("Message").fill("typed meanwhile")

    strip = page.get_by_role("alert").filter(has_text="All work is stopped")
    expect(strip).to_have_count(0)
    manage(site, "kill_switch", "on", "--reason", "A leak.")
    expect(strip).to_contain_text("“A leak.”")
    manage(site, "kill_switch", "off")
    expect(strip).to_have_count(0)

    number = address.rstrip("/").rpartition("/")[2]
    manage(site, "redact", number, "1", "--by", site.username, "--reason", "A password.")
    expect(page.locator(".said")).to_have_text(re.compile(r"\[redacted\]"))
    expect(page.get_by_text("swordfish")).to_have_count(0)
    expect(page.get_by_label("Message")).to_have_value("typed meanwhile")
    assert page.evaluate("window.neverReloaded")
