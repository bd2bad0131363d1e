"""A webhook of a person: made on the account page, and told by a real worker of what happens to their turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from conversations.models import Proof
from conversations.triggers.hooks.proofs import proven_id
from tests.agentsite.processes import wait_for
from tests.browser.conftest import WAIT_MS, serving, signed_in
from tests.browser.test_axe import finds_nothing
from tests.conversations.notifications.webhooks.receiver import receiving

pytestmark = pytest.mark.browser


def test_a_program_is_told_of_a_turn_from_its_approval_to_its_end(browser: Browser, tmp_path: Path) -> None:
    started = serving(tmp_path, AGENTSITE_WEBHOOK_NETWORKS="127.0.0.0/8", AGENTSITE_SWEEP_SECONDS="1")
    with receiving() as receiver, started as site:
        context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
        context.set_default_timeout(WAIT_MS)
        page = signed_in(context.new_page(), site)
        page.goto(f"{site.url}/account/#notifications")
        here = page.get_by_role("region", name="Notifications")
        here.get_by_label("Address").fill(receiver.url)
        here.get_by_role("button", name="Create webhook").click()
        expect(here.get_by_role("status").filter(has_text="Copy it now")).to_be_visible()
        secret = here.get_by_label("The secret").input_value()
        finds_nothing(page)
        here.get_by_role("button", name="Send a test").click()
        last = here.get_by_text("A test, ")
        wait_for(lambda: page.goto(f"{site.url}/account/") and "delivered." in last.inner_text())
        finds_nothing(page)

        page.goto(site.url)
        page.get_by_role("textbox", name="Message").fill("run ls")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Approve", exact=False).first.click()
        wait_for(lambda: len(receiver.got) == 4)
        context.close()
        told = sorted(json.loads(got.body)["type"] for got in receiver.got)
        assert told == ["approval.decided", "approval.requested", "turn.ended", "webhook.test"]
        for got in receiver.got:
            assert proven_id(Proof.STANDARD, got.headers, got.body, [secret], timezone.now())
