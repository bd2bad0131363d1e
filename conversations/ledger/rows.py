"""The rows that a record writes: their columns, their values, and the statements that insert them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection

from agents.engine.closing import USAGE, answer_price
from agents.engine.ledger import Step, canonical, valid_text
from agents.engine.outputs.kinds import Output, ToolOutput
from conversations.database.sql import placeholders
from conversations.ledger.place import LedgerPlace
from conversations.models import Output as OutputRow

STEP_COLUMNS = "conversation_id, seq, prompt_id, path, actor, type, attempt, payload, time, digest"
USAGE_COLUMNS = ("conversation_id", "prompt_id", "path", "model", "time", *USAGE, "cost_nano_usd")
"""The columns of an answer's usage. Its user is the conversation's owner."""
PLACED = ("conversation_id", "prompt_id", "position", "path", "parent", "type")
"""The columns of an output that never change."""
GATE = ("ask", "reason", "risk", "digest", "who", "edited_by", "expires_at", "decided_by", "decided_at", "via", "note")
"""The columns that are named like the fields of a gate."""
CHANGING = ("data", "result", "tool", "gate", "gate_path", "asked_at", *GATE)
WIDTHS = {field.name: field.max_length for field in OutputRow._meta.concrete_fields}
"""The maximum length of each column. PostgreSQL refuses longer values; SQLite does not check."""


def step_row(place: LedgerPlace, step: Step, payload: str, digest: str) -> tuple[Any, ...]:
    """Return the values of STEP_COLUMNS for a step."""
    attempt = step.payload.get("attempt") if step.type == "action_start" else None
    at = database_time(step.time)
    return place.conversation, step.id, place.prompt, step.path, step.actor, step.type, attempt, payload, at, digest


def usage_row(place: LedgerPlace, step: Step, used: dict[str, int]) -> tuple[Any, ...]:
    """Return the values of INSERT_USAGE for an answer that used so many tokens."""
    return (
        place.conversation,
        place.prompt,
        step.path,
        valid_text(str(step.payload["model"]))[:200],
        database_time(step.time),
        *(used.get(name, 0) for name in USAGE),
        answer_price(step),
        place.conversation,
    )


def output_row(place: LedgerPlace, output: Output) -> tuple[Any, ...]:
    """Return the values of UPSERT_OUTPUT for an output."""
    columns = {"conversation_id": place.conversation, "prompt_id": place.prompt, **output_columns(output)}
    stored = connection.ops.adapt_datetimefield_value
    return tuple(stored(columns[name]) if name.endswith("_at") else columns[name] for name in PLACED + CHANGING)


def output_columns(output: Output) -> dict[str, Any]:
    """Return the columns of a stored output, without its conversation and prompt.

    `data` is the whole output. The other texts are made valid and cut to their column: a model wrote some of them.
    """
    columns: dict[str, Any] = dict.fromkeys(CHANGING, "")
    if isinstance(output, ToolOutput):
        columns |= {"result": output.result.type, "tool": output.tool}
        if gate := output.approval:
            columns |= {"gate": gate.state, "gate_path": gate.path, "asked_at": gate.requested_at}
            columns |= {name: getattr(gate, name) for name in GATE}
    for name, text in columns.items():
        if name.endswith("_at"):
            columns[name] = datetime.fromisoformat(text) if text else None
        else:
            columns[name] = valid_text(text)[: WIDTHS[name]]
    placed = {"position": output.position, "path": output.path, "parent": output.parent, "type": output.type}
    return placed | columns | {"data": canonical(output.model_dump(mode="json"))}


def database_time(iso: str) -> Any:
    """Return an ISO time in the form the database takes."""
    return connection.ops.adapt_datetimefield_value(datetime.fromisoformat(iso))


INSERT_STEP = f"INSERT INTO conversations_step ({STEP_COLUMNS}) VALUES ({placeholders(10)})"
INSERT_SNAPSHOT = "INSERT INTO conversations_snapshot (sha256, text) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT_USAGE = (
    f"INSERT INTO conversations_usage ({', '.join(USAGE_COLUMNS)}, user_id)"
    f" VALUES ({placeholders(len(USAGE_COLUMNS))}, (SELECT owner_id FROM conversations_conversation WHERE id = %s))"
)
UPSERT_OUTPUT = (
    f"INSERT INTO conversations_output ({', '.join(PLACED + CHANGING)}) VALUES ({placeholders(len(PLACED + CHANGING))})"
    " ON CONFLICT (conversation_id, prompt_id, position)"
    f" DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in CHANGING)}"
)
