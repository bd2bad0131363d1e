"""A program talks to the agent with OpenAI's SDK, and a person decides in the admin what it asks for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openai import OpenAI
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import waiting
from tests.browser.test_keys import keys

pytestmark = pytest.mark.browser


def client(page: Page, site: Site) -> OpenAI:
    """OpenAI's SDK with what the account page says when a key is made."""
    page.goto(f"{site.url}/account/#keys")
    keys(page).get_by_label("Name", exact=True).fill("Terminal")
    keys(page).get_by_role("checkbox", name="Talk to the agent").check()
    keys(page).get_by_role("button", name="Create key").click()
    address = keys(page).get_by_label("The base URL").input_value()
    assert address == f"{site.url}/context"
    return OpenAI(base_url=address, api_key=keys(page).get_by_label("The key").input_value(), max_retries=0)


def test_what_a_program_asks_for_is_approved_in_the_admin(page: Page, site: Site) -> None:
    sdk = client(page, site)
    earlier: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "I said this elsewhere."}]
    question: list[Any] = [*earlier, {"role": "user", "content": "Look around, then say the day."}]
    answer: Any = sdk.chat.completions.create(model="normal", messages=question)
    for command in ("echo two files", "echo it is Friday"):
        assert [item["reason"] for item in answer.approval["items"]] == [f"Run: {command}"]
        waiting(page, site, command)
        page.get_by_role("button", name=re.compile("^Approve")).click()
        expect(page.get_by_text("Approved by you")).to_be_visible()
        answer = sdk.chat.completions.create(
            model="normal", messages=question, metadata={"prompt": str(answer.approval["prompt"])}
        )
    assert answer.choices[0].message.content.endswith("Two files, Friday.")
    assert answer.approval is None
    page.goto(f"{site.url}/c/{answer.metadata['conversation']}/")
    expect(page.get_by_text("Two files, Friday.")).to_be_visible()
    expect(page.get_by_text("I said this elsewhere.")).to_be_hidden()
    page.get_by_text("Came with 2 earlier messages").click()
    expect(page.get_by_text("I said this elsewhere.")).to_be_visible()
