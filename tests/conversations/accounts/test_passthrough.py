"""Who calls /v1: keys are known for less than a second, and no request or token is lost or admitted twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from agents.passthrough.caller import Tokens
from agents.passthrough.errors import Refused
from conversations.accounts.counts import COUNTS
from conversations.accounts.passthrough import KnownKey, SiteCaller, reader
from conversations.models import ApiKey, PassthroughUsage, Scope

pytestmark = pytest.mark.django_db(transaction=True)
ALIASES = {"fast": "small-1"}


@pytest.fixture
def caller() -> Iterator[SiteCaller]:
    """What is counted is written before the tables are emptied."""
    yield SiteCaller(ALIASES)
    COUNTS.flush()
    asyncio.run(reader(connections.close_all))


def key_of(user: User, *scopes: str, **columns: Any) -> tuple[ApiKey, str]:
    key, text = ApiKey.objects.create(
        user=user, name="laptop", scopes=[*(scopes or (Scope.PASSTHROUGH,))], expiry=None, prefix="agk_", **columns
    )
    return key, f"Bearer {text}"


def known(caller: SiteCaller, header: str) -> KnownKey:
    return asyncio.run(caller.authenticate(header))


def refused(caller: SiteCaller, who: KnownKey, model: str = "small-1") -> Refused:
    with pytest.raises(Refused) as error:
        caller.may(who, model)
    return error.value


def rows() -> list[tuple[str, int, int, int, int]]:
    return list(
        PassthroughUsage.objects.order_by("model").values_list(
            "model", "requests", "answers", "input_tokens", "output_tokens"
        )
    )


def test_what_a_key_used_is_in_the_table(caller: SiteCaller, ann: User) -> None:
    key, header = key_of(ann)
    who = known(caller, header)
    for _ in range(3):
        caller.may(who, "small-1")
    caller.used(who, "small-1", Tokens(10, 4, 5, 2))
    caller.used(who, "small-1", Tokens(1, 0, 1, 0, estimated=True))
    caller.may(who, "")
    COUNTS.flush()
    assert rows() == [("", 1, 0, 0, 0), ("small-1", 3, 2, 11, 6)]
    row = PassthroughUsage.objects.get(model="small-1")
    assert (row.user, row.key_id, row.key_name) == (ann, key.pk, "laptop")
    assert (row.estimated, row.cached_tokens, row.reasoning_tokens) == (1, 4, 2)


def test_of_a_thousand_requests_at_once_as_many_begin_as_may(caller: SiteCaller, ann: User) -> None:
    _, header = key_of(ann, requests_a_day=70)

    async def one() -> str:
        try:
            caller.may(await caller.authenticate(header), "small-1")
        except Refused as error:
            return error.code
        return "admitted"

    async def many() -> list[str]:
        return await asyncio.gather(*(one() for _ in range(1000)))

    assert Counter(asyncio.run(many())) == {"admitted": 70, "quota_exceeded": 930}
    COUNTS.flush()
    assert rows() == [("small-1", 70, 0, 0, 0)]


def test_a_revoked_key_is_unknown_at_once(caller: SiteCaller, ann: User) -> None:
    key, header = key_of(ann)
    known(caller, header)
    key.delete()
    with pytest.raises(Refused) as error:
        known(caller, header)
    assert (error.value.status, error.value.code) == (401, "invalid_api_key")
