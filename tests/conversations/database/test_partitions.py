"""The script for partitions that the operator's guide describes, on a site with data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction

from conversations.database import guard
from conversations.models import Draft, Output, State, Step, Usage
from conversations.verification.stored import verify
from tests.conversations.recorded import ONE_GATE, Site

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]

SCRIPT = Path(__file__).parents[3] / "docs" / "partition.sql"


def partition() -> None:
    """Run the script within the test's transaction, with which it is undone."""
    block = re.search(r"^DO \$\$.*?^\$\$;", SCRIPT.read_text(), re.DOTALL | re.MULTILINE)
    assert block
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(block.group())


def plan(sql: str) -> str:
    """Return PostgreSQL's plan for a query, as it is for tables that are not as small as these."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(line for (line,) in cursor.fetchall())


def keys_and_indexes(table: str) -> set[str]:
    """Return the indexes of a table with their columns, without the primary key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexdef FROM pg_indexes WHERE tablename = %s AND indexname NOT LIKE %s", [table, "%pkey"]
        )
        return {definition.replace(" ON ONLY ", " ON ") for (definition,) in cursor.fetchall()}


def test_a_partitioned_site_goes_on(site: Site, ann: User) -> None:
    """A turn that waited during the change is decided and ends after it; another one starts."""
    before = site.runs(ann, *ONE_GATE)
    tables = [model._meta.db_table for model in (Step, Output, Draft, Usage)]
    was = {table: keys_and_indexes(table) for table in tables}
    rows = list(Step.objects.order_by("pk").values())

    partition()

    assert {table: keys_and_indexes(table) for table in tables} == was
    assert guard.missing(connection) == []
    assert list(Step.objects.order_by("pk").values()) == rows
    site.approves(before, ann)
    site.works()
    before.refresh_from_db()
    after = site.ended(ann, *ONE_GATE)
    assert [before.state, after.state] == [State.COMPLETED] * 2
    assert Step.objects.filter(prompt=after).earliest("pk").pk > rows[-1]["id"]
    assert [verify(turn.conversation_id).problems for turn in (before, after)] == [[], []]


def test_a_query_looks_into_one_partition(site: Site, ann: User) -> None:
    prompt = site.ended(ann, *ONE_GATE)
    partition()
    assert "Seq Scan" not in plan(f"SELECT * FROM conversations_output WHERE id = {Output.objects.earliest('pk').pk}")
    asked = f"SELECT * FROM conversations_step WHERE conversation_id = {prompt.conversation_id} AND seq > 3"
    assert len(set(re.findall(r"conversations_step_\d+\b", plan(asked)))) == 1


@pytest.mark.parametrize("sql", ["UPDATE {} SET type = 'other'", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_the_ledger_of_a_partitioned_site_is_as_append_only(site: Site, ann: User, sql: str) -> None:
    """Also where somebody names the partition."""
    prompt = site.ended(ann, *ONE_GATE)
    partition()
    (held,) = (
        Step.objects.filter(prompt=prompt, seq=1).extra(select={"held": "tableoid::regclass::text"}).values_list("held")
    )
    for table in ("conversations_step", *held):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.format(table))
