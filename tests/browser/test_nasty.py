"""Nasty texts everywhere: each page stays whole, on a phone and on a desk, and its buttons can be clicked.

What a person, a model, a tool or a file may say stands in titles, messages, answers, thoughts, calls, cards, results,
widgets, names and errors. What does not fit scrolls in its own box, breaks, or ends in an ellipsis.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import Site, serving
from tests.browser.nasty.turns import TURNS
from tests.browser.nasty.whole import faults, is_whole
from tests.browser.test_axe import finds_nothing
from tests.budget import share
from tests.texts import TEXTS, short

pytestmark = pytest.mark.browser

SITE = {"AGENTSITE_APPS": "tests.browser.nasty.app", "AGENTSITE_PROMPTS_AT_ONCE": "1000"}
FILL = "from tests.browser.nasty.world import fill; import json; print(json.dumps(fill()))"
FILL_SECONDS = 300.0
READ_BY_ALL = (
    "/", "/?q=a", "/?runs=1", "/approvals/", "/approvals/?person=1", "/approvals/?show=decided",
    "/workflows/runs/", "/workflows/nasty.ask/runs/", "/account/", "/admin/",
    "/admin/conversations/approval/", "/admin/conversations/conversation/", "/admin/conversations/prompt/",
    "/admin/conversations/file/", "/admin/conversations/apikey/", "/admin/agents/systemprompt/",
    "/admin/agents/skill/", "/admin/agents/blueprint/", "/admin/auth/user/",
)  # fmt: skip
"""Pages on which all texts stand."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose people, model, tools and workflows say nothing but nasty texts."""
    with serving(tmp_path_factory.mktemp("nasty"), TURNS, **SITE) as site:
        yield site


@pytest.fixture(scope="module")
def made(site: Site) -> dict[str, Any]:
    """Where everything is: turns and conversations by the name of their text, and the batch."""
    command = ("manage.py", "shell", "--verbosity", "0", "--command", FILL)
    filled = run(*command, environment=site.environment, seconds=FILL_SECONDS)
    assert filled.returncode == 0, filled.stderr
    where: dict[str, Any] = json.loads(filled.stdout)
    return where


@pytest.fixture
def page(page: Page) -> Page:
    """A window whose sockets say nothing: pages are left before they are connected."""
    page.route_web_socket(re.compile("/ws/"), lambda _socket: None)
    return page


@pytest.mark.parametrize("name", share(list(TEXTS), of=5))
def test_the_pages_of_a_text_are_whole(name: str, page: Page, site: Site, made: dict[str, Any]) -> None:
    conversations, prompts = made["conversations"][name], made["prompts"][name]
    chat = f"/c/{conversations['waits']}/"
    is_whole(page, f"{site.url}{chat}")
    command, _, fields = page.locator("article.ask").evaluate_all("all => all.map(one => one.id.slice(2))")
    for path in (
        f"{chat}?edit={fields}",
        f"{chat}?reject={command}",
        f"{chat}decide/?all=reject",
        f"/prompts/{prompts['waits']}/",
        f"/c/{conversations['fails']}/",
        f"/c/{conversations['run-asks']}/",
        f"/c/{conversations['run-done']}/",
        f"/c/{conversations['run-failed']}/",
        f"/workflows/nasty.ask/runs/{prompts['run-asks']}/again/",
        f"/approvals/{command}/",
        f"/approvals/{fields}/?as=edit",
        f"/approvals/together/?ids={command},{fields}",
        f"/admin/conversations/approval/{command}/change/",
        f"/admin/conversations/approval/{fields}/change/?as=edit",
    ):
        is_whole(page, f"{site.url}{path}")


@pytest.mark.parametrize("path", READ_BY_ALL)
def test_the_pages_of_all_texts_are_whole(path: str, page: Page, site: Site, made: dict[str, Any]) -> None:
    is_whole(page, f"{site.url}{path}")


def test_the_page_of_a_batch_is_whole(page: Page, site: Site, made: dict[str, Any]) -> None:
    is_whole(page, f"{site.url}/workflows/batches/{made['batch']}/")


def test_the_preview_of_a_batch_is_whole(page: Page, site: Site) -> None:
    """Its figures stay on one line, as those of every table."""
    table = io.StringIO()
    csv.writer(table).writerows([["text", "texts"], *([short(text), "1918.4 / 0"] for text in TEXTS.values())])
    page.goto(f"{site.url}/workflows/nasty.ask/batch/")
    page.get_by_role("textbox", name="The table").fill(table.getvalue())
    page.get_by_role("button", name="Check the table").click()
    expect(page.get_by_role("group", name="The lines of the table")).to_contain_text("1918.4 / 0")
    assert not faults(page)
    page.set_viewport_size({"width": 320, "height": 900})
    heights = page.locator(".cell", has_text="1918.4 / 0").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(heights) == len(TEXTS)
    assert max(heights) < 30  # pixels: one line


@pytest.mark.parametrize("name", ["hebrew-code", "word"])
def test_axe_finds_nothing_in_a_nasty_chat(name: str, page: Page, site: Site, made: dict[str, Any]) -> None:
    finds_nothing(page, f"{site.url}/c/{made['conversations'][name]['waits']}/")
    finds_nothing(page, f"{site.url}/c/{made['conversations'][name]['run-done']}/")
