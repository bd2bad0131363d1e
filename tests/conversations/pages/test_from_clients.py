"""Turns of OpenAI clients on the conversation's page: what came along with a message, and an answer of a given form."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.models import Conversation, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.live_page import parsed
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client: Client) -> User:
    found = person("ann")
    client.force_login(found)
    return found


def words(client: Client, talk: Conversation) -> str:
    return " ".join(parsed(client.get(talk.get_absolute_url()).text).text().split())


def asked_for_json(ann: User, site: Site, **answer: str) -> Prompt:
    site.speaks(says("Here it is.", call("final_answer", **answer)))
    form = {"schema": {"type": "object"}}
    prompt = start_prompt(start_conversation(ann), ann, "As JSON.", from_client={"form": form})
    site.works()
    return prompt


def test_an_answer_of_a_given_form_is_shown_as_it_is(client: Client, ann: User, site: Site) -> None:
    """JSON is no Markdown: its lines, stars and underscores stay."""
    prompt = asked_for_json(ann, site, name="*a* and _b_", link="[x](https://example.org/)", tag="<b>")
    html = client.get(prompt.conversation.get_absolute_url()).text
    assert (
        "<code>{\n  &quot;name&quot;: &quot;*a* and _b_&quot;,\n  &quot;link&quot;: &quot;[x](https://example.org/)&quot;,"
        "\n  &quot;tag&quot;: &quot;&lt;b&gt;&quot;\n}</code>"
    ) in html


def test_the_step_that_gives_it_is_named_in_words(client: Client, ann: User, site: Site) -> None:
    prompt = asked_for_json(ann, site, name="Zug")
    assert "1 step: Final answer" in words(client, prompt.conversation)


def test_quotes_stand_behind_a_line_that_says_whose_they_are(client: Client, ann: User) -> None:
    quotes = [["user", "What is it?"], ["assistant", "A <b>ledger</b>."]]
    prompt = start_prompt(start_conversation(ann), ann, "And?", from_client={"quotes": quotes})
    told = words(client, prompt.conversation)
    assert "Came with 2 earlier messages" in told
    assert "record. User What is it? Assistant A <b>ledger</b>." in told
