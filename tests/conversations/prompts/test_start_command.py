"""`manage.py start_policy`: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper

from conversations.models import Conversation, Prompt
from conversations.prompts.killswitch import turn_on
from tests.conversations.recorded import Site
from tests.conversations.travel import ROME, installed, owner_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(db: None) -> User:
    """A user who may start policies."""
    return owner_of()


@pytest.fixture(autouse=True)
def _app(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)


def run(name: str = "travel.plan", user: str = "ann", input: Any = ROME, **more: Any) -> str:
    out = io.StringIO()
    given = input if isinstance(input, str) else json.dumps(input)
    call_command("start_policy", name, f"--user={user}", f"--input={given}", stdout=OutputWrapper(out), **more)
    return out.getvalue()


def test_it_prints_the_prompt_and_its_page(ann: User, settings: Any) -> None:
    settings.AGENTSITE_URL = "https://site.example"
    printed = run()
    prompt = Prompt.objects.get()
    page = f"https://site.example/c/{prompt.conversation_id}/#t-{prompt.pk}"
    assert printed == f"Started prompt {prompt.pk}: {page}\n"
    assert (prompt.policy, prompt.asked_by, prompt.conversation.owner, prompt.tier) == (
        "travel.plan",
        ann,
        ann,
        "normal",
    )


def test_it_may_start_in_a_conversation_and_read_its_input(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = Conversation.objects.create(owner=ann, title="Trips")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(ROME)))
    run(input="-", conversation=conversation.pk, tier="high")
    prompt = conversation.prompts.get()
    assert (prompt.tier, conversation.title) == ("high", "Trips")


@pytest.mark.parametrize(
    ("wrong", "code", "told"),
    [
        ({"input": {"city": "Rome", "days": 0}}, 2, "days: Enter a number that is 1 or more."),
        ({"input": {"days": 3}}, 2, "city: Field required."),
        ({"name": "no.such"}, 2, "`manage.py agents` lists what there is"),
        ({"name": "fx.read"}, 2, "There is no policy 'fx.read'"),
        ({"user": "bob"}, 1, "You may not start 'travel.plan'."),
        ({"user": "nobody"}, 1, "There is no user 'nobody'."),
        ({"input": "{"}, 1, "it is not JSON"),
        ({"input": "[]"}, 1, "it must be a JSON object"),
        ({"conversation": 10**9}, 1, "There is no conversation 1000000000."),
    ],
)
def test_what_is_refused_says_why_and_starts_nothing(
    ann: User, bob: User, wrong: dict[str, Any], code: int, told: str
) -> None:
    with pytest.raises(CommandError) as refused:
        run(**wrong)
    assert told in str(refused.value)
    assert refused.value.returncode == code
    assert not Prompt.objects.exists()


def test_it_starts_nothing_in_anothers_conversation_nor_while_all_is_stopped(ann: User, bob: User) -> None:
    theirs = Conversation.objects.create(owner=bob)
    with pytest.raises(CommandError, match="is not ann's"):
        run(conversation=theirs.pk)
    turn_on(None, "A leak.")
    with pytest.raises(CommandError, match="A leak"):
        run()
    assert not Prompt.objects.exists()
