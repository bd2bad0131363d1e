"""Totals of tokens and money by turn, conversation and person, on the pages and over the API."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from conversations.erasure.conversations import erase
from conversations.models import Quota, Usage
from conversations.usage.totals import DAY, MONTH, NOTHING, Spent, dollars, of_conversations, of_person, of_prompts
from tests.conversations.support import Story, person, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


def answered(owner: User, tokens: int = 600, price: int | None = 1_500_000, rounds: int = 1) -> Story:
    story = Story(owner)
    for _ in range(rounds):
        story.asks_model()
        story.answers(says("So."), tokens=tokens)
    story.ends()
    Usage.objects.filter(prompt_id=story.prompt.pk).update(cost_nano_usd=price)
    return story


def test_sums_are_of_the_rows(owner: User) -> None:
    """S100, C19: each answer counts once, with its price where one is known."""
    story, other = answered(owner, rounds=2), answered(owner, price=None)
    assert of_prompts([story.conversation.pk], [story.prompt.pk]) == {
        story.prompt.pk: Spent(2, 1200, 0, 1200, 0, 3_000_000, 0, ("demo",))
    }
    assert of_conversations([story.conversation.pk, other.conversation.pk])[other.conversation.pk].cost_usd is None
    both = of_person(owner.pk, DAY).spent
    assert (both.answers, both.total_tokens, both.unpriced, both.cost) == (3, 3600, 1, "at least $0.0030")
    assert of_person(person("bob").pk, DAY).spent == NOTHING


def test_a_span_ends_and_a_deleted_conversation_still_counts(owner: User) -> None:
    story = answered(owner)
    erase(story.conversation, owner)
    assert of_person(owner.pk, DAY).spent.answers == 1
    Usage.objects.update(time=timezone.now() - timedelta(hours=25))
    assert (of_person(owner.pk, DAY).spent.answers, of_person(owner.pk, MONTH).spent.answers) == (0, 1)


@pytest.mark.parametrize(
    ("nano", "words"),
    [(0, "$0.00"), (10_000, "under $0.0001"), (3_000_000, "$0.0030"), (1_234_567_890_000, "$1,234.57")],
)
def test_small_sums_keep_figures_that_say_something(nano: int, words: str) -> None:
    assert dollars(nano) == words


def test_a_turn_and_its_conversation_say_what_they_took(client: Client, owner: User) -> None:
    story = answered(owner)
    html = client.get(f"/c/{story.conversation.pk}/").text
    used = re.findall(r'<details class="used">.*?</details>', html, re.S)[0]
    assert "1 round · 1,200 tokens · $0.0015" in used
    assert "<dt>of which reasoning</dt>" in used
    assert "demo" in used
    assert f'href="/c/{story.conversation.pk}/usage/"' in html
    page = client.get(f"/c/{story.conversation.pk}/usage/").text
    assert "By turn" in page
    assert page.count("$0.0015") == 2


def test_the_account_says_what_was_used_of_what_there_is(client: Client, owner: User, settings: Any) -> None:
    settings.AGENTSITE_TOKENS_A_DAY = 1000
    answered(owner)
    html = client.get("/account/").text
    assert "Last 24 hours" in html
    assert "Last 30 days" in html
    assert '<strong class="num">1,000</strong> tokens in the last 24 hours' in html
    assert "You can start new turns, and your keys can ask models, once" in html
    Quota.objects.create(user=owner, tokens_a_day=0)
    assert "tokens in the last 24 hours" not in client.get("/account/").text


def test_the_api_tells_the_same(client: Client, owner: User, django_assert_num_queries: Any) -> None:
    story = answered(owner)
    told = client.get("/api/usage/").json()
    assert told["last_24_hours"] | {"answers": 1, "cost_usd": 0.0015, "total_tokens": 1200} == told["last_24_hours"]
    assert told["quota"] == {
        "running_prompts": 20,
        "tokens_a_day": None,
        "requests_a_minute": 600,
        "requests_a_day": None,
        "storage_bytes": 20480 * 2**20,
    }
    one = client.get(f"/api/conversations/{story.conversation.pk}/").json()
    assert (one["usage"]["total_tokens"], one["usage"]["models"]) == (1200, ["demo"])
    client.get("/api/conversations/")
    for _ in range(3):
        answered(owner)
    with django_assert_num_queries(5):
        assert len(client.get("/api/conversations/").json()["results"]) == 4
