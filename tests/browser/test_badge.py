"""How many approvals wait, on an open page of somebody who decides for others."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.agentsite.processes import run, wait_for
from tests.browser.conftest import Site
from tests.browser.test_first_turn import say
from tests.browser.test_survives import asked

pytestmark = pytest.mark.browser

BOB = "from django.contrib.auth.models import User; User.objects.create_user('bob')"


def test_it_moves_by_what_others_ask(page: Page, site: Site) -> None:
    """It stands beside a conversation in which nothing happens, and the list beside it stays as it is."""
    say(page, site, "Count with me.")
    expect(page.get_by_text("Hello.")).to_be_visible()
    badge, shown = page.locator("#approvals"), page.locator("#list .conv").count()
    before = int(badge.get_attribute("data-v") or 0)
    run("manage.py", "shell", "-c", BOB, environment=site.environment)
    key = run("manage.py", "api_key", "bob", environment=site.environment).stdout.strip()
    talk = asked(site, key, "/api/conversations/", {})["id"]
    prompt = asked(site, key, f"/api/conversations/{talk}/prompts/", {"input": "Tidy up."})["id"]
    expect(badge).to_have_text(f"{before + 1} waiting")
    wait_for(lambda: asked(site, key, f"/api/prompts/{prompt}/")["state"] == "waiting_for_approval")
    gate = asked(site, key, "/api/approvals/")["results"][0]
    asked(site, key, f"/api/approvals/{gate['id']}/reject/", {"digest": gate["approval"]["digest"]})
    expect(badge).to_have_text(f"{before} waiting" if before else "")
    expect(page.locator("#list .conv")).to_have_count(shown)
