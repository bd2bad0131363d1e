"""Usage under /v1: adding to it, and reading it by key, model and minute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.passthrough.caller import Tokens
from conversations.models import ApiKey, PassthroughUsage, Usage
from conversations.usage.totals import DAY

UPSERT_MOST = 50
"""Rows in one statement: SQLite allows 999 values in some of its builds."""

TOKENS = Sum(F("input_tokens") + F("output_tokens"))


class Place(NamedTuple):
    """Where usage is counted. `minute`: since 1970, by the host's clock."""

    user: int
    key: int
    model: str
    minute: int


@dataclass
class Counted:
    """The counts of one row, named as its columns."""

    requests: int = 0
    answers: int = 0
    estimated: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nano_usd: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def add(self, more: Counted) -> None:
        """Add other counts to these."""
        for name in COLUMNS:
            setattr(self, name, getattr(self, name) + getattr(more, name))

    def add_answer(self, tokens: Tokens) -> None:
        """Add one answer, whose price is added later."""
        self.answers += 1
        self.estimated += tokens.estimated
        self.input_tokens += tokens.input_tokens
        self.cached_tokens += tokens.cached_tokens
        self.output_tokens += tokens.output_tokens
        self.reasoning_tokens += tokens.reasoning_tokens


COLUMNS = tuple(field.name for field in fields(Counted))


def add(counted: Mapping[Place, Counted]) -> None:
    """Add these counts to the table. Call it in a transaction; several processes may do so at the same time."""
    # Erasing a person deletes their keys first and empties the names here after that. The lock keeps this order.
    keys = ApiKey.objects.select_for_update(no_key=True).filter(pk__in={place.key for place in counted})
    names = dict(keys.order_by("pk").values_list("pk", "name"))
    rows = sorted(counted.items(), key=lambda row: row[0][1:])  # in one order everywhere: no deadlocks on PostgreSQL
    for first in range(0, len(rows), UPSERT_MOST):
        _upsert(rows[first : first + UPSERT_MOST], names)
    if connection.vendor == "postgresql":  # whose commit would wait for those who hold the lock of a person's row
        connection.check_constraints()


def _upsert(rows: list[tuple[Place, Counted]], names: Mapping[int, str]) -> None:
    table = PassthroughUsage._meta.db_table
    columns = ("user_id", "key_id", "key_name", "model", "minute", *COLUMNS)
    row = f"({', '.join(['%s'] * len(columns))})"
    sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in COLUMNS)
    values: list[Any] = []
    for place, counts in rows:
        minute = connection.ops.adapt_datetimefield_value(time_of(place.minute))
        values += [place.user, place.key, names.get(place.key, ""), place.model, minute, *astuple(counts)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * len(rows))}"
            f" ON CONFLICT (key_id, model, minute) DO UPDATE SET {sums}",
            values,
        )


def time_of(minute: int) -> datetime:
    """Return the beginning of a minute that is counted since 1970."""
    return datetime.fromtimestamp(minute * 60, UTC)


@dataclass
class Level:
    """What a key, or a person with all keys, used: requests of one minute, and what counts for the limits of a day."""

    minute: int = 0
    in_minute: int = 0
    requests: int = 0
    tokens: int = 0

    def add(self, minute: int, requests: int, tokens: int) -> None:
        """Add what was used in a minute, which may be the next one."""
        if minute > self.minute:
            self.minute, self.in_minute = minute, 0
        if minute == self.minute:
            self.in_minute += requests
        self.requests += requests
        self.tokens += tokens


def read_levels(user_id: int, minute: int, *, day: bool) -> dict[int, Level]:
    """Return the level of each key of a person; without `day` only of this minute, which takes much less reading."""
    rows = recent(user_id, DAY) if day else PassthroughUsage.objects.filter(user=user_id, minute=time_of(minute))
    found = (
        rows.order_by()
        .values_list("key_id")
        .annotate(
            in_minute=Coalesce(Sum("requests", filter=Q(minute=time_of(minute))), 0),
            all_requests=Sum("requests"),
            tokens=TOKENS,
        )
    )
    return {key: Level(minute, *counts) for key, *counts in found}


def room_at(user_id: int, key: int | None, counted: str, excess: int) -> datetime:
    """Return when so many requests or tokens will have fallen out of the last 24 hours, if nothing more is used.

    `counted`: "requests", or "tokens", which with `key` None include those of conversations.
    """
    rows = recent(user_id, DAY) if key is None else recent(user_id, DAY).filter(key_id=key)
    column = Sum("requests") if counted == "requests" else TOKENS
    times: list[tuple[datetime, int]] = list(rows.order_by().values_list("minute").annotate(sum=column))
    if key is None and counted == "tokens":
        answers = Usage.objects.filter(user=user_id, time__gt=timezone.now() - DAY)
        times += answers.order_by().values_list("time").annotate(sum=TOKENS)
    for time, used in sorted(times):
        excess -= used
        if excess <= 0:
            return time + DAY
    return timezone.now() + DAY  # it was used just now, and is not in the table yet


def recent(user_id: int, span: timedelta) -> QuerySet[PassthroughUsage]:
    """Return the rows of a person's usage within the last `span`."""
    return PassthroughUsage.objects.filter(user=user_id, minute__gt=timezone.now() - span)
