"""A model's failure in words: what happened, what to do about it, and where, each for whoever reads it."""

from __future__ import annotations

import html as entities
import re

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.engine.ledger import Step, action_error
from agents.providers.common import failures
from conversations.display.failure import KINDS, failures_of
from conversations.models import Prompt
from tests.api.client import with_key
from tests.conversations.support import Story, person

pytestmark = pytest.mark.django_db

SAID = "HTTP 401: Incorrect API key provided: sk-ab***yz."
TEMPORARY = ("rate_limited", "server_error", "unreachable", "timeout", "stream_broken", "empty_answer", "incomplete")


@pytest.fixture
def owner() -> User:
    return person("mara", first_name="Mara")


def fails(owner: User, code: str, message: str = SAID, *, times: int = 1, policy: str = "", **more: object) -> Story:
    """Record a turn whose model is asked so often, and fails with this code."""
    story = Story(owner, "Look around.")
    if policy:
        Prompt.objects.filter(pk=story.prompt.pk).update(policy=policy)
    story.asks_model()
    fails_in(story, code, message, times=times, **more)
    return story


def fails_in(story: Story, code: str, message: str = SAID, *, times: int = 1, **more: object) -> None:
    """Let the round that has begun fail, and the turn with it."""
    path = str(story.round)
    for attempt in range(2, times + 1):
        retry = {"attempt": attempt - 1, "code": code, "message": message, "wait_seconds": 1.0}
        story.append(
            Step("worker:1", "action_retry", retry, path=path),
            Step("worker:1", "action_start", {"attempt": attempt}, path=path),
        )
    story.append(action_error("model", code, message, path=path, **more))
    story.ends("failed", "model_error", message)


def words(client: Client, story: Story) -> str:
    """Return the text of the panel of the turn, in one line."""
    html = client.get(f"/c/{story.conversation.pk}/").content.decode()
    panel = re.findall(r'<div class="panel" role="alert">.*?</footer>|<div class="panel" role="alert">.*', html, re.S)[
        0
    ]
    return " ".join(entities.unescape(re.sub("<[^>]+>", " ", panel)).split())


@pytest.mark.parametrize("code", KINDS)
def test_a_member_reads_what_happened_and_whom_to_ask(client: Client, owner: User, code: str) -> None:
    """Every kind has its words; what an administrator must do is not told as if the member could."""
    person("ada", is_superuser=True, first_name="Ada")
    story = fails(owner, code)
    client.force_login(owner)
    said = words(client, story)
    kind = KINDS[code]
    assert kind.happened in said
    assert kind.advice in said
    assert "docs/settings.md" not in said
    assert not kind.repair or kind.repair not in said
    assert ("Ada" in said) == (code != "context_overflow")
    assert said.count(SAID) == 1, "the server's own words stand once, in the details"
    assert "What the model server said" in said


@pytest.mark.parametrize("code", KINDS)
def test_asking_again_is_offered_where_it_can_help(client: Client, owner: User, code: str) -> None:
    """What needs a repair can be asked again after it, but that is not the obvious thing to do."""
    story = fails(owner, code)
    client.force_login(owner)
    html = client.get(f"/c/{story.conversation.pk}/").content.decode()
    assert (f"/prompts/{story.prompt.pk}/again/" in html) == (code != "context_overflow")
    assert ('class="btn primary"' in html.split('<div class="panel"')[1]) == (code in (*TEMPORARY, "context_overflow"))
    assert ("Start a new conversation</a>" in html) == (code == "context_overflow")


@pytest.mark.parametrize("code", KINDS)
def test_a_turn_goes_on_once_its_model_is_repaired(client: Client, owner: User, code: str) -> None:
    """What people approved before it failed was done, and is not lost."""
    story = Story(owner, "Run it.")
    story.asks_model()
    call = story.call("shell.run", command="date")
    story.answers(call)
    story.begins(call)
    story.comes_to(call, "Thu")
    story.asks_model()
    fails_in(story, code)
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    client.force_login(owner)
    html = client.get(f"/c/{story.conversation.pk}/").content.decode()
    assert "1 finished step was kept." in html
    assert (f"/prompts/{story.prompt.pk}/continue/" in html) == (code != "context_overflow")


@pytest.mark.parametrize("code", KINDS)
def test_a_workflow_is_told_what_needs_a_repair_too(client: Client, owner: User, code: str) -> None:
    """Its form opens again whatever happened; only what passes by itself is to be told if it keeps happening."""
    prompt = fails(owner, code, policy="workflow:project.create").prompt
    prompt.refresh_from_db()
    advice = failures_of([prompt], owner)[prompt.pk].advice
    assert ("If it keeps happening" in advice) == (code in TEMPORARY)
    assert ("Run it with less input." in advice) == (code == "context_overflow")


@pytest.mark.parametrize("code", KINDS)
def test_an_administrator_reads_where_to_set_it(client: Client, code: str) -> None:
    """The settings by name, and the page of the documentation that has them."""
    chief = person("ada", is_superuser=True, is_staff=True)
    story = fails(chief, code)
    client.force_login(chief)
    said = words(client, story)
    assert KINDS[code].repair in said
    for name in KINDS[code].settings:
        assert name in said
    assert ("docs/settings.md" in said) == bool(KINDS[code].settings)
    assert "administrator" not in said


def test_the_settings_that_are_named_are_documented() -> None:
    documented = (settings.BASE_DIR / "docs/settings.md").read_text()
    assert [name for kind in KINDS.values() for name in kind.settings if f"`{name}`" not in documented] == []


def test_every_code_of_a_provider_has_words() -> None:
    """The list in the providers' docstring, and the table, are the same."""
    assert set(re.findall("^- `(\\w+)`", failures.__doc__ or "", re.M)) == set(KINDS)


def test_how_often_it_was_asked_is_told(client: Client, owner: User) -> None:
    story = fails(owner, "server_error", "HTTP 503: Overloaded.", times=4)
    client.force_login(owner)
    assert re.search(r"not working\. It was asked 4 times in [\d.]+ s\.", words(client, story))


def test_a_server_that_asks_to_wait_is_quoted(owner: User) -> None:
    prompt = fails(owner, "rate_limited", "Slow down.", wait_seconds=5401.0).prompt
    assert "The server asks to wait 2 h. Try again after that." in failures_of([prompt], owner)[prompt.pk].advice


def test_a_code_that_nobody_knows_has_words_too(client: Client, owner: User) -> None:
    """A provider of an app may have codes of its own."""
    story = fails(owner, "teapot", "I am a teapot.")
    client.force_login(owner)
    assert "The model did not answer." in words(client, story)
    assert f"/prompts/{story.prompt.pk}/again/" in client.get(f"/c/{story.conversation.pk}/").content.decode()


def test_nobody_is_named_where_there_is_no_administrator(client: Client, owner: User) -> None:
    client.force_login(owner)
    assert "Ask an administrator to fix this, and then try again." in words(client, fails(owner, "key_refused"))


def test_the_api_has_a_code_for_each_kind(owner: User) -> None:
    """With the words, and what the server said; null for a turn that did not fail."""
    api = with_key(owner)
    story = fails(owner, "key_refused", times=2)
    error = api.get(f"/api/prompts/{story.prompt.pk}/").json()["error"]
    assert error["code"] == "key_refused"
    assert error["message"].startswith("The model server does not accept this site's key. It was asked 2 times")
    assert error["message"].endswith("Ask an administrator to fix this, and then try again.")
    assert error["details"] == SAID
    ended = Story(owner)
    assert api.get(f"/api/prompts/{ended.prompt.pk}/").json()["error"] is None
    ended.ends("failed", "max_rounds", "Stopped after 10 rounds, the limit of one turn.")
    assert api.get(f"/api/prompts/{ended.prompt.pk}/").json()["error"] == {
        "code": "max_rounds",
        "message": "Stopped after 10 rounds, the limit of one turn.",
        "details": None,
    }


def test_the_first_page_of_the_admin_says_what_to_do(client: Client, owner: User) -> None:
    fails(owner, "key_refused")
    client.force_login(person("ada", is_superuser=True, is_staff=True))
    html = entities.unescape(client.get(reverse("admin:index")).content.decode())
    assert "does not accept this site's key." in html
    assert "Setting: OPENAI_API_KEY." in html


def test_an_export_has_both(client: Client, owner: User) -> None:
    client.force_login(owner)
    story = fails(owner, "key_refused")
    text = client.get(f"/c/{story.conversation.pk}/export/").content.decode()
    assert "Ask an administrator to fix this, and then try again." in text
    assert "does not accept this site" in text
    assert "The model server said:" in text


def test_many_failed_turns_take_as_few_queries_as_one(owner: User, django_assert_num_queries: object) -> None:
    fails(owner, "key_refused")
    for _ in range(4):
        fails(owner, "server_error", times=3)
    prompts = list(Prompt.objects.all())
    with django_assert_num_queries(3):  # type: ignore[operator]
        found = failures_of(prompts, owner)
    assert [found[prompt.pk].code for prompt in prompts] == ["key_refused", *["server_error"] * 4]
