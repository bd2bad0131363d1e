"""The docs page of the API in a real browser, under its own policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

pytestmark = pytest.mark.browser


def test_requests_can_be_tried_out_as_whoever_is_logged_in(page: Page, site: Site) -> None:
    """Nothing is loaded from elsewhere, the policy refuses nothing that the page needs, and the token goes along."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site.url}/api/docs/")
    start = page.locator("#operations-conversations-start_a_conversation")
    start.get_by_role("button", name="Start a conversation").click()
    start.get_by_role("button", name="Try it out").click()
    start.locator("textarea").fill('{"title": "Tried out"}')
    with page.expect_response(lambda response: response.request.method == "POST") as sent:
        start.get_by_role("button", name="Execute").click()
    assert sent.value.status == 201
    expect(start.locator(".live-responses-table")).to_contain_text("Tried out")
    assert [url for url in asked if not url.startswith((site.url, "data:", "blob:"))] == []
