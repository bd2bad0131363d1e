"""The state of plugins before a turn: of each the newest, whatever came before it, found without reading all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.engine.ledger import Step
from conversations.ledger.journal import append
from conversations.ledger.states import newest_states
from conversations.models import Conversation, Prompt
from conversations.models import Step as StepRow
from conversations.prompts.start import start_conversation, start_prompt
from tests.budget import examples
from tests.conversations.recorded import place, record

pytestmark = pytest.mark.django_db


def keep(prompt: Prompt, plugin: str, value: object) -> None:
    """Record that a plugin keeps this."""
    at = place(prompt)
    with transaction.atomic():
        append(at, record(prompt, at, Step("runtime", "state", {"plugin": plugin, "value": {"kept": value}})))


def by_reading_all(prompt: Prompt) -> dict[str, Any]:
    rows = StepRow.objects.filter(conversation=prompt.conversation_id, type="state").exclude(prompt=prompt)
    return {(kept := json.loads(row.payload))["plugin"]: kept["value"] for row in rows.order_by("seq")}


PLUGINS = st.sampled_from(["tools", "skills", "too", "b\u00e9", 'q"uote', "app.basket"])
VALUES = st.sampled_from([1, "a", {"plugin": "tools"}, '","value":', None])


@given(st.lists(st.tuples(PLUGINS, VALUES, st.booleans()), max_size=12))
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_each_plugin_it_is_the_newest_of_other_turns(ann: User, kept: list[tuple[str, object, bool]]) -> None:
    conversation = start_conversation(ann)
    earlier, now = (Prompt.objects.create(conversation=conversation, number=number) for number in (1, 2))
    for plugin, value, by_itself in kept:
        keep(now if by_itself else earlier, plugin, value)
    assert newest_states(now.conversation_id, now.pk) == by_reading_all(now)


def test_it_uses_the_index(ann: User) -> None:
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    keep(prompt, "tools", 1)
    asked: list[tuple[str, Any]] = []

    def hears(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: dict[str, Any]) -> Any:
        asked.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(hears):
        newest_states(prompt.conversation_id, 0)
    ((sql, values),) = asked
    explain, searched = "EXPLAIN QUERY PLAN", "step_state (conversation_id=? AND <expr><?"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            explain, searched = "EXPLAIN", "step_state"
            cursor.execute("SET LOCAL enable_seqscan = off")  # these are faster while there is one step
            cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"{explain} {sql}", values)
        plan = str(cursor.fetchall())
    assert searched in plan, plan
    assert "one_step_per_seq" not in plan, plan


def test_another_conversation_is_another_matter(ann: User) -> None:
    keep(start_prompt(start_conversation(ann), ann, "Go."), "tools", 1)
    assert newest_states(Conversation.objects.create(owner=ann).pk, 0) == {}
