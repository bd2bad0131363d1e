"""What workers, monitors and the kill switch ask again and again is found by the index on leases.

Reading all the turns there ever were would take longer with every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from conversations.ledger.claims import claimable, holders, lapse, next_lapse
from conversations.models import KillSwitch
from conversations.prompts.killswitch import enforce
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.health import hosts
from tests.conversations.recorded import taken

pytestmark = pytest.mark.django_db
QUESTIONS: list[Callable[[], object]] = [
    lambda: claimable(10),
    next_lapse,
    holders,
    hosts,
    enforce,
    lambda: lapse("worker:test"),
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_it_uses_the_index(ann: User, ask: Callable[[], object]) -> None:
    taken(start_prompt(start_conversation(ann), ann, "Go."))
    KillSwitch.objects.create(on_by="system", reason="Stop.")
    asked: list[tuple[str, Any]] = []

    def hears(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: dict[str, Any]) -> Any:
        asked.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(hears):
        ask()
    sql, values = next((sql, values) for sql, values in asked if "conversations_prompt" in sql)
    explain = "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            explain = "EXPLAIN"
            cursor.execute("SET LOCAL enable_seqscan = off")  # which is faster while there is one turn
        cursor.execute(f"{explain} {sql}", values)
        plan = str(cursor.fetchall())
    assert "prompt_claimable" in plan, plan
    assert "SCAN conversations_prompt" not in plan, plan
