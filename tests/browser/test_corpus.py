"""The corpus of payloads in a real browser: in an answer, a file's preview and the print view it is inert (T-50)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import Browser, Dialog, Page

from tests.agentsite.processes import run
from tests.attacks.payloads import PAYLOADS
from tests.browser.conftest import WAIT_MS, Site, serving, signed_in
from tests.conversations.pages.files.filing import filed
from tests.conversations.support import Story, says

pytestmark = pytest.mark.browser

ELSEWHERE = "http://127.0.0.2:9"
RECORD = "import json; from tests.browser.test_corpus import record; print(json.dumps(record('ann')))"
REACH = """async () => {
    document.querySelectorAll("main details").forEach(each => { each.open = true })
    document.querySelectorAll("img").forEach(each => { each.loading = "eager" })
    await Promise.all([...document.images].map(each => each.complete || new Promise(done => {
        each.onload = each.onerror = done
    })))
}"""
"""Shows everything at once, so that whatever would be loaded is."""


@transaction.atomic  # else the site's worker takes up the turn at once
def record(username: str) -> tuple[int, int]:
    """Record a turn that answers with every payload. Returns its conversation, and a Markdown file with the same."""
    texts = [each.replace("HOSTILE", ELSEWHERE) for each in PAYLOADS]
    story = Story(User.objects.get(username=username), texts[0])
    story.asks_model()
    story.answers(*map(says, texts))
    story.ends()
    text = "\n\n".join(texts).replace("\0", "")  # a file with zeros is no text
    file = filed(story.conversation, "payloads.md", text.encode(), "text/markdown")
    return story.conversation.pk, file.pk


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("corpus"), None) as site:
        yield site


@pytest.fixture(scope="module")
def recorded(site: Site) -> tuple[int, int]:
    made = run("manage.py", "shell", "-v", "0", "-c", RECORD, environment=site.environment)
    assert made.returncode == 0, made.stderr
    conversation, file = json.loads(made.stdout)
    return conversation, file


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    yield signed_in(context.new_page(), site)
    context.close()


@pytest.mark.parametrize("where", ["/c/{0}/", "/files/{1}/view/", "/c/{0}/print/"])
def test_nothing_happens(page: Page, site: Site, recorded: tuple[int, int], where: str) -> None:
    """No dialog, no script, no request to elsewhere, no navigation, nothing that the policy has to block."""
    asked: list[str] = []
    dialogs: list[str] = []
    blocked: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.context.on("request", lambda request: asked.append(request.url))
    page.on("dialog", dismissed)
    page.on("console", lambda said: blocked.append(said.text) if "Content Security Policy" in said.text else None)
    address = site.url + where.format(*recorded)
    page.goto(address)
    page.evaluate(REACH)
    drawn = [url for url in asked if re.search(r"/diagrams/[0-9a-f]{64}\.svg", url)]
    assert drawn, "the pictures of diagrams are part of it"
    assert [url for url in asked if not url.startswith(site.url)] == []
    assert [url for url in asked if "/logout" in url] == []
    assert (dialogs, blocked, page.url) == ([], [], address)
    assert page.title() != "RAN"
    assert page.locator("main script, main style, main iframe, main object, main embed, main base").count() == 0
    assert page.locator("#main").count() <= 1
    assert page.locator("#now").count() <= 1
