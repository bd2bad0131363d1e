"""Reading steps from the ledger, as the engine's."""

from __future__ import annotations

import json
from datetime import datetime

from django.db.models import QuerySet
from django.db.models.expressions import Combinable

from agents.engine.ledger import Step
from conversations.database.plans import repeated_cursor
from conversations.database.sql import read_time
from conversations.models import Step as StepRow


def read_steps(conversation: int, prompt: int, after: int = 0) -> list[Step]:
    """Return the steps of a prompt with a seq above `after`, as engine steps."""
    with repeated_cursor() as cursor:
        cursor.execute(
            "SELECT actor, type, path, seq, payload, time FROM conversations_step"
            " WHERE conversation_id = %s AND prompt_id = %s AND seq > %s ORDER BY seq",
            [conversation, prompt, after],
        )
        rows = cursor.fetchall()
    return [_engine_step(*row, at=read_time(at)) for *row, at in rows]


def engine_steps(rows: QuerySet[StepRow], payload: Combinable | str = "payload") -> list[Step]:
    """Return these steps in order, with what `payload`, a column or an expression, makes of theirs."""
    fields = rows.order_by("seq").values_list("actor", "type", "path", "seq", payload, "time")
    return [_engine_step(*row, at=at) for *row, at in fields]


def engine_step(row: StepRow) -> Step:
    """Return a stored step as an engine step."""
    return _engine_step(row.actor, row.type, row.path, row.seq, row.payload, at=row.time)


def _engine_step(actor: str, type: str, path: str, seq: int, text: str, *, at: datetime) -> Step:
    return Step.recorded(actor=actor, type=type, payload=json.loads(text), path=path, id=seq, time=at.isoformat())
