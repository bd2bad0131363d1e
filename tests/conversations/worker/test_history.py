"""The earlier turns of a conversation, as a worker reads them for the turn that it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User

from conversations.database import erasable_cache
from conversations.erasure.steps import redact
from conversations.models import Output, Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.history import encoded_turns, past_turns, tools_used
from tests.agentsite.processes import wait_for
from tests.conversations.recorded import Site
from tests.engine.cast import site as cast
from tests.engine.support import ScriptedProvider, call, says, seen
from tests.idle import new_drain

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)


def test_turns_are_read_from_the_newest_back(site: Site, ann: User) -> None:
    """In pages that are oldest first, and together all there is; the one that asks is none of them."""
    conversation = start_conversation(ann)
    answers = [says(f"Answer {number}.") for number in range(7)]
    for number in range(7):
        site.runs(ann, *answers[: number + 1], conversation=conversation)
    now = start_prompt(conversation, ann, "Go on.").pk
    everything = past_turns(conversation.pk, now)
    assert [turn.outputs[0].text for turn in everything] == [f"Answer {n}." for n in range(7)]  # type: ignore[attr-defined]
    pages = [past_turns(conversation.pk, now, 3, skip) for skip in (6, 3, 0)]
    assert [turn for page in pages for turn in page] == everything
    assert [len(page) for page in pages] == [1, 3, 3]
    assert past_turns(conversation.pk, now, 3, 7) == []


def test_the_order_is_that_in_which_they_ended(site: Site, ann: User) -> None:
    conversation = start_conversation(ann)
    first, second = (site.runs(ann, says("Yes."), conversation=conversation) for _ in range(2))
    Prompt.objects.filter(pk=first.pk).update(ended_at=second.ended_at)
    assert [turn.prompt for turn in past_turns(conversation.pk, 0)] == [first.pk, second.pk]
    Prompt.objects.filter(pk=first.pk).update(
        ended_at=None if second.ended_at is None else second.ended_at.replace(year=2999)
    )
    assert [turn.prompt for turn in past_turns(conversation.pk, 0, 1)] == [first.pk]


def test_the_tools_that_were_used(site: Site, ann: User) -> None:
    """By earlier turns of this conversation."""
    conversation = start_conversation(ann)
    script = [says("", call("fx.read", a=1)), says("Done."), says("", call("report.write", name="q")), says("Done.")]
    site.runs(ann, *script, conversation=conversation)
    now = site.runs(ann, *script, conversation=conversation)
    assert tools_used(conversation.pk, now.pk) == {"fx.read"}
    assert tools_used(conversation.pk, 0) == {"fx.read", "report.write"}
    assert tools_used(start_conversation(ann).pk, 0) == set()


def texts(provider: ScriptedProvider) -> list[str]:
    """What a model was told in the last question, as it was said."""
    return [getattr(message, "text", "") for message in seen(provider.asked[-1])]


def reads(rows: list[Any]) -> list[str]:
    """The queries for what turns consist of."""
    return [row["sql"] for row in rows if f'FROM "{Output._meta.db_table}"' in row["sql"] and '"data"' in row["sql"]]


def test_a_turn_costs_what_is_new(site: Site, ann: User, django_assert_max_num_queries: Any) -> None:
    """Of a turn that has been sent, nothing is read again; the model sees it nevertheless."""
    registry, provider = cast(lambda _: says("A long answer."))
    site.monkeypatch.setattr("agents.registry.policies", lambda: registry)
    conversation = start_conversation(ann)
    for _ in range(4):
        start_prompt(conversation, ann, "Go.")
        with django_assert_max_num_queries(1000) as found:
            site.works()
        conversation.refresh_from_db()
    assert texts(provider) == ["Go.", "A long answer."] * 3 + ["Go."]
    (read,) = reads(found.captured_queries)
    third = conversation.prompts.get(number=3)
    assert f"IN ({third.pk})" in read


def test_what_was_redacted_is_not_sent_from_memory(site: Site, ann: User) -> None:
    registry, provider = cast(lambda _: says("A secret name."))
    site.monkeypatch.setattr("agents.registry.policies", lambda: registry)
    conversation = start_conversation(ann)
    for _ in range(2):
        start_prompt(conversation, ann, "Go.")
        site.works()
        conversation.refresh_from_db()
    assert encoded_turns.size > 0
    assert texts(provider)[1] == "A secret name."
    redact(conversation, [Step.objects.filter(conversation=conversation, type="text").earliest("seq").seq], ann, "Why.")
    start_prompt(conversation, ann, "Go.")
    site.works()
    assert "A secret name." not in texts(provider)[:2]
    assert texts(provider)[3] == "A secret name."


@pytest.mark.django_db(transaction=True)
def test_a_drain_that_has_nothing_to_do_forgets_what_was_redacted(site: Site, ann: User) -> None:
    site.monkeypatch.setattr(erasable_cache, "LOOK_SECONDS", 0.02)
    conversation = start_conversation(ann)
    for _ in range(2):
        site.runs(ann, says("A secret name."), says("Again."), conversation=conversation)
        conversation.refresh_from_db()
    seq = Step.objects.filter(conversation=conversation, type="text").earliest("seq").seq
    assert encoded_turns.size > 0

    drain = new_drain()

    async def forget() -> None:
        running = asyncio.create_task(drain())
        await sync_to_async(redact)(conversation, [seq], ann, "Why.")
        await asyncio.to_thread(wait_for, lambda: not encoded_turns.size)
        drain.stop()
        await running

    async_to_sync(forget)()
