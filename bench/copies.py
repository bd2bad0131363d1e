"""Copies of conversations, by the database itself: a million steps are there in a minute."""

from __future__ import annotations

from typing import Any

AT_ONCE = 1_000
"""Copies that are stored in one transaction."""


def copy(conversation: Any, times: int) -> None:
    """Store a conversation so many times again, with its turns, steps and outputs, under new ids."""
    from django.db import connection, transaction

    from conversations.models import Conversation, Output, Prompt, Step

    found_by = {Conversation: "id", Prompt: "conversation_id", Step: "conversation_id", Output: "conversation_id"}
    rows = {model: f"{model._meta.db_table}.{column} = {conversation.pk}" for model, column in found_by.items()}
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        new = {model._meta.db_table: _new_id(cursor, model._meta.db_table, which) for model, which in rows.items()}
        for first in range(1, times + 1, AT_ONCE):
            with transaction.atomic():
                if postgres:
                    cursor.execute("SET CONSTRAINTS ALL DEFERRED")
                for model, which in rows.items():
                    cursor.execute(_statement(model, which, new, range(first, min(first + AT_ONCE, times + 1))))
        for name in new if postgres else ():
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT max(id) FROM {name}))")


def _new_id(cursor: Any, name: str, which: str) -> str:
    """Return the expression for the id of a row of this table in copy `n.i`: {} stands for its own id."""
    cursor.execute(f"SELECT min(id), max(id), (SELECT max(id) FROM {name}) FROM {name} WHERE {which}")
    least, most, last = cursor.fetchone()
    return f"{{}} + {last - least + 1} + (n.i - 1) * {most - least + 1}"


def _statement(model: Any, which: str, new: dict[str, str], numbers: range) -> str:
    """Return the statement that makes the copies with these numbers of `which` rows of one table."""
    name = model._meta.db_table
    columns, values = [], []
    for field in model._meta.concrete_fields:
        related = name if field.primary_key else field.remote_field and field.remote_field.model._meta.db_table
        columns.append(field.column)
        values.append(new.get(related, "{}").format(f"{name}.{field.column}"))
    counted = f"SELECT {numbers.start} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {numbers.stop}"
    return (
        f"INSERT INTO {name} ({', '.join(columns)}) WITH RECURSIVE n(i) AS ({counted})"
        f" SELECT {', '.join(values)} FROM {name}, n WHERE {which} ORDER BY n.i, {name}.id"
    )
