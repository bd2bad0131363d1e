"""A page is rendered once: what it shows comes from memory the next time, until something was erased or redacted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.signals import template_rendered
from django.utils import timezone, translation
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from conversations.approvals.decisions import decide
from conversations.display.html_cache import html_cache
from conversations.display.rendering.formulas import formula
from conversations.display.rendering.message import message_html
from conversations.models import Step
from conversations.pages.chat.live import catch_up
from conversations.push.access import Pass
from conversations.push.listener import Listener
from conversations.push.tailer import Tailer
from conversations.push.topics import ListTopic
from conversations.templatetags import display
from tests.agentsite.processes import wait_for
from tests.conversations.support import Story, asking, says

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "## Result\n\n- one\n- **two**\n"
CHART = {"title": "Sums", "kind": "bar", "labels": ["a"], "series": [{"name": "Run", "values": [1.0]}], "unit": ""}
ALL = {"markdown", "typed", "widgets/chart.html", "conversations/timeline/row.html", "conversations/card/inside.html"}
MANAGE = """
import sys
import django
django.setup()
from django.core.management import execute_from_command_line
from django.db import connection
connection.settings_dict["NAME"] = sys.argv[1]
execute_from_command_line(["manage.py", *sys.argv[2:]])
"""


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What was rendered and how often: Markdown, what people typed, and templates by name."""
    found: Counter[str] = Counter()
    render = MarkdownIt.render

    def counting(self: MarkdownIt, *args: Any) -> Any:
        found["markdown"] += 1
        return render(self, *args)

    def on_template(template: Any, **_: object) -> None:
        found[template.name] += 1

    def typing(message: str) -> SafeString:
        found["typed"] += 1
        return message_html(message)

    monkeypatch.setattr(MarkdownIt, "render", counting)
    monkeypatch.setattr(display, "message_html", typing)
    template_rendered.connect(on_template)
    yield found
    template_rendered.disconnect(on_template)


@pytest.fixture
def story(client: Client, ann: User) -> Story:
    """A turn with everything that is cached: text, a chart, a call, and a decided gate."""
    story, output = asking(ann, command="ls -la")
    decide(output.pk, ann, "approve", digest=output.digest, via="page")
    client.force_login(ann)
    story.asks_model()
    drawn = story.call("chart.show")
    story.answers(says(TEXT), drawn)
    story.emits(drawn, "widget", widget="chart", data=CHART, fallback="In words.")
    story.comes_to(drawn, "The person sees it.")
    story.asks_model()
    story.answers(says("Done, *all* of it."))
    story.ends()
    return story


def page(client: Client, story: Story) -> str:
    """Return the page, without what is new in every answer."""
    html = client.get(f"/c/{story.conversation.pk}/").text
    return re.sub(r'"[\w-]{22}"|"\w{64}"', '""', html)


def manage(*command: str) -> None:
    """Run `manage.py` in another process, on the database of this test."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    arguments = [sys.executable, "-c", MANAGE, str(connection.settings_dict["NAME"]), *command]
    done = subprocess.run(
        arguments, cwd=Path(__file__).parents[3], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_second_load_renders_nothing(client: Client, story: Story, rendered: Counter[str]) -> None:
    first = page(client, story)
    assert rendered.keys() >= ALL
    rendered.clear()
    assert page(client, story) == first
    assert not rendered.keys() & ALL


def test_a_turn_that_ended_is_put_together_once_and_each_reader_has_their_own_token(
    ann: User, rendered: Counter[str]
) -> None:
    story = Story(ann)
    story.asks_model()
    drawn = story.call("chart.show")
    story.answers(says("Done, *all* of it."), drawn)
    story.emits(drawn, "widget", widget="chart", data=CHART, fallback="In words.")
    story.comes_to(drawn, "The person sees it.")
    story.ends()
    readers = [Client(enforce_csrf_checks=True) for _ in range(2)]
    for reader in readers:
        reader.force_login(ann)
    pages = [page(reader, story) for reader in readers]
    assert pages[0] == pages[1]
    assert rendered["conversations/exchange.html"] == 1
    path = f"/prompts/{story.prompt.pk}/again/"
    tokens = [token_of(path, reader.get(f"/c/{story.conversation.pk}/").text) for reader in readers]
    assert readers[1].post(path, {"csrfmiddlewaretoken": tokens[0]}).status_code == 403
    assert readers[1].post(path, {"csrfmiddlewaretoken": tokens[1]}).status_code == 302


def token_of(path: str, html: str) -> str:
    """Return the token of the form that is sent to this address."""
    found = re.search(rf'action="{path}".*?name="csrfmiddlewaretoken" value="(\w+)"', html, re.DOTALL)
    assert found
    return found.group(1)


def test_a_page_that_comes_back_renders_nothing_either(client: Client, story: Story, rendered: Counter[str]) -> None:
    page(client, story)
    rendered.clear()
    html, _ = catch_up(story.conversation.pk, 0)
    assert "<strong>two</strong>" in html
    assert not rendered.keys() & ALL


def test_new_words_are_rendered_alone(client: Client, story: Story, ann: User, rendered: Counter[str]) -> None:
    page(client, story)
    rendered.clear()
    more = Story(ann, conversation=story.conversation)
    more.asks_model()
    more.answers(says("And *more*."))
    more.ends()
    assert "<em>more</em>" in page(client, story)
    assert {name: rendered[name] for name in ALL if rendered[name]} == {"markdown": 1, "typed": 1}


def test_another_renderer_renders_again(
    client: Client, story: Story, rendered: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page(client, story)
    rendered.clear()
    monkeypatch.setattr("conversations.templatetags.display.RENDERER", ("markdown-it-py 99.0",))
    page(client, story)
    assert rendered["markdown"] == 2


@pytest.mark.parametrize("other", [translation.override("de"), timezone.override("Asia/Tokyo")])
def test_another_language_or_time_zone_renders_again(
    client: Client, story: Story, rendered: Counter[str], other: Any
) -> None:
    page(client, story)
    rendered.clear()
    with other:
        page(client, story)
    assert rendered.keys() >= ALL


@pytest.mark.parametrize("how", ["redact", "erase"])
def test_what_another_process_removes_goes_from_memory(
    client: Client, story: Story, ann: User, rendered: Counter[str], how: str
) -> None:
    """At the latest when any page is loaded, without a hint."""
    page(client, story)
    alone = html_cache.size
    other = Story(ann)
    other.asks_model()
    other.answers(says("A *secret*: $\\text{swordfish}$."))
    other.ends()
    page(client, other)
    assert html_cache.size > alone
    assert formula.cache_info().currsize > 0
    rendered.clear()
    seq = Step.objects.get(prompt=other.prompt, type="text").seq
    steps = [str(seq)] if how == "redact" else []
    manage(how, str(other.conversation.pk), *steps, "--by", "ann", "--reason", "A password.")
    page(client, story)
    assert rendered.keys() >= ALL
    assert html_cache.size == alone
    assert formula.cache_info().currsize == 0


def test_an_open_page_makes_it_go_soon(client: Client, story: Story, ann: User) -> None:
    """The process notices what another one removes, though nobody loads a page."""
    tailer = Tailer(lambda topic, message: None)
    tailer.follow(ListTopic(ann.pk), Listener(Pass(ann.pk)))
    page(client, story)
    tailer.start()
    try:
        assert html_cache.size > 0
        manage("erase", str(story.conversation.pk), "--by", "ann", "--reason", "A password.")
        wait_for(lambda: html_cache.size == 0)
    finally:
        tailer.stop()
