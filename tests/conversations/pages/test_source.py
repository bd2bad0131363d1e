"""Copying: a message and an answer as they were written, for their owner alone."""

import re

import pytest
from django.test import Client

from conversations.erasure.steps import redact
from conversations.ledger.redacted import PLACEHOLDER
from conversations.models import Step
from tests.conversations.support import Story, asking, person, says

pytestmark = pytest.mark.django_db

MESSAGE = "Tidy <b>up</b>,\n\n  \u202eeverything.\u202c"
ANSWER = "# Done\n\n- *one*\n- `two`\n\n\u202eend"


@pytest.fixture
def story(client: Client) -> Story:
    owner = person("anna", first_name="Anna")
    client.force_login(owner)
    story = Story(owner, MESSAGE)
    story.asks_model()
    story.answers(says(ANSWER))
    story.ends()
    return story


def addresses(client: Client, story: Story) -> list[str]:
    """Where the links of the page lead that copy."""
    return re.findall(r'href="([^"]*)"[^>]* data-source', client.get(story.conversation.get_absolute_url()).text)


def test_each_is_given_as_it_was_written(client: Client, story: Story) -> None:
    """Not as it is shown: nothing is marked, escaped or left out. It is plain text, so that nothing in it runs."""
    given = [client.get(address) for address in addresses(client, story)]
    assert [answer.content.decode() for answer in given] == [MESSAGE, ANSWER]
    assert {answer["Content-Type"] for answer in given} == {"text/plain; charset=utf-8"}
    assert {answer["X-Content-Type-Options"] for answer in given} == {"nosniff"}


def test_what_was_redacted_is_not_given(client: Client, story: Story) -> None:
    """Neither by a page that still has the links, nor by one that is loaded anew."""
    before = addresses(client, story)
    steps = Step.objects.filter(prompt=story.prompt)
    seqs = [steps.get(type="action_call", path="").seq, steps.get(type="text").seq]
    redact(story.conversation, seqs, story.conversation.owner, "A password.")
    given = {address: client.get(address) for address in (*before, *addresses(client, story))}
    assert len(before) == 2
    assert {answer.text for answer in given.values() if answer.status_code == 200} <= {PLACEHOLDER}
    assert {answer.status_code for answer in given.values()} <= {200, 404}


def test_its_link_opens_beside_the_page(client: Client, story: Story) -> None:
    """Where nothing copies, for lack of JavaScript or of https, the chat stays open."""
    html = client.get(story.conversation.get_absolute_url()).text
    links = re.findall(r"<a [^>]*data-source>", html)
    assert len(links) == 2
    assert all('target="_blank" rel="noopener"' in link for link in links)


def test_nobody_else_gets_it(client: Client, story: Story) -> None:
    found = addresses(client, story)
    client.force_login(person("bob"))
    assert [client.get(address).status_code for address in found] == [404, 404]
    client.logout()
    assert all(client.get(address)["Location"].startswith("/login/") for address in found)


def test_only_messages_and_texts_are_given(client: Client, story: Story) -> None:
    other, output = asking(story.conversation.owner)
    assert client.get(f"/prompts/{other.prompt.pk}/texts/{output.position}/").status_code == 404  # a call
    assert client.get(f"/prompts/{story.prompt.pk}/texts/{output.position + 1000}/").status_code == 404
    type(other.prompt).objects.filter(pk=other.prompt.pk).update(input=None)
    assert client.get(f"/prompts/{other.prompt.pk}/message/").status_code == 404
