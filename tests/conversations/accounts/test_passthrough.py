"""Who calls /v1: which keys are taken, for how long they are known, and the limits of keys and people."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.passthrough.caller import Tokens
from agents.passthrough.errors import Refused
from conversations.accounts import passthrough
from conversations.accounts.counts import COUNTS
from conversations.accounts.passthrough import SiteCaller
from conversations.models import PassthroughUsage, Quota, Scope, Usage
from tests.agentsite.processes import wait_for
from tests.conversations.accounts.calling import ANSWER, MODEL, counted, key_of, known, refused, unknown
from tests.conversations.support import person

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def half_past(monkeypatch: pytest.MonkeyPatch) -> float:
    """The middle of the current minute, at which the clock stands still."""
    now = time.time() // 60 * 60 + 30
    monkeypatch.setattr("conversations.accounts.standing.time.time", lambda: now)
    return now


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer agk_\udcff\u00e9\ud800", "agk_", "Bearer x y"]
)
def test_what_is_no_key_is_401(caller: SiteCaller, header: str) -> None:
    error = unknown(caller, header)
    assert (error.status, error.code) == (401, "invalid_api_key")


def test_a_key_without_the_scope_is_403(caller: SiteCaller, ann: User) -> None:
    _, header = key_of(ann, scopes=[Scope.READ.value, Scope.CHAT.value])
    error = unknown(caller, header)
    assert (error.status, error.code) == (403, "missing_scope")
    assert header.split()[1] not in error.message


def test_an_expired_key_is_401(caller: SiteCaller, ann: User) -> None:
    """Also while it is still known."""
    key, header = key_of(ann, expiry=timedelta(seconds=0.3))
    known(caller, header)
    wait_for(lambda: timezone.now() >= key.expiry)
    assert unknown(caller, header).status == 401


def test_a_change_counts_at_once(caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deactivated person, a scope that was taken away, another limit, a revoked key: however long it was known."""
    monkeypatch.setattr(passthrough, "FRESH_SECONDS", 3600)
    monkeypatch.setattr(passthrough, "AHEAD_SECONDS", 3600)
    key, header = key_of(ann)
    known(caller, header)
    ann.is_active = False
    ann.save()
    assert unknown(caller, header).status == 401
    ann.is_active = True
    ann.save()
    known(caller, header)
    Quota.objects.create(user=ann, requests_a_minute=1)
    caller.may(known(caller, header), MODEL)
    assert refused(caller, known(caller, header)).code == "rate_limit_exceeded"
    key.scopes = []
    key.save()
    assert unknown(caller, header).code == "missing_scope"
    key.scopes = [Scope.PASSTHROUGH.value]
    key.save()
    known(caller, header)
    key.delete()
    assert unknown(caller, header).code == "invalid_api_key"


CHILD = """
import os, sys
import django
django.setup()
from django.db import connection
connection.settings_dict["NAME"] = sys.argv[1]
"""
REVOKES = """
from conversations.models import ApiKey
ApiKey.objects.get(pk=int(sys.argv[2])).delete()
"""


def elsewhere(program: str, *arguments: object) -> None:
    """Run a program in a second process, on the same database."""
    command = [sys.executable, "-c", CHILD + program, connection.settings_dict["NAME"], *arguments]
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    subprocess.run([str(part) for part in command], cwd=ROOT, env=environment, check=True)


def test_a_key_that_another_process_revokes_is_unknown_within_half_a_second(caller: SiteCaller, ann: User) -> None:
    key, header = key_of(ann)

    async def asks_until_refused() -> float:
        """Return how long it was still taken after the other process had ended."""
        await caller.authenticate(header)
        revoking = asyncio.create_task(asyncio.to_thread(elsewhere, REVOKES, key.pk))
        ended = 0.0
        while True:
            try:
                await caller.authenticate(header)
            except Refused as error:
                assert error.code == "invalid_api_key"  # noqa: PT017
                await revoking
                return time.monotonic() - ended if ended else 0.0
            if revoking.done() and not ended:
                ended = time.monotonic()
            await asyncio.sleep(0.01)

    assert asyncio.run(asks_until_refused()) < 0.5  # what is under way asks as often: a second in all


def test_nobody_waits_while_a_busy_key_is_looked_up(
    caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up beside its requests, and what that finds counts from then on."""
    monkeypatch.setattr(passthrough, "FRESH_SECONDS", 3600)
    monkeypatch.setattr(passthrough, "AHEAD_SECONDS", 3600)
    key, header = key_of(ann)
    known(caller, header)
    elsewhere(REVOKES, key.pk)
    looked = threading.Event()
    read = caller._read

    def waits(authorization: str) -> Any:
        looked.wait()
        return read(authorization)

    monkeypatch.setattr(caller, "_read", waits)
    monkeypatch.setattr(passthrough, "AHEAD_SECONDS", 0)
    for _ in range(3):
        assert known(caller, header).key == key.pk
    looked.set()
    wait_for(lambda: isinstance(asyncio.run(whoever(caller, header)), Refused))


async def whoever(caller: SiteCaller, header: str) -> object:
    """Who it is, or why not."""
    try:
        return await caller.authenticate(header)
    except Refused as error:
        return error


def test_many_who_send_the_same_key_share_one_look(caller: SiteCaller, ann: User) -> None:
    _, header = key_of(ann)
    looks: list[str] = []

    async def many() -> None:
        await asyncio.gather(*(caller.authenticate(header) for _ in range(200)))

    def listen() -> None:
        connection.execute_wrappers.append(note)

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        looks.append(sql)
        return execute(sql, *rest)

    asyncio.run(passthrough.reader(listen))
    asyncio.run(many())
    assert sum("conversations_apikey" in sql for sql in looks) == 1
    asyncio.run(passthrough.reader(lambda: connection.execute_wrappers.remove(note)))


def test_a_database_that_does_not_answer_is_503(caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _, header = key_of(ann)

    def away(_header: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(passthrough, "key_from_header", away)
    error = unknown(caller, header)
    assert (error.status, error.code) == (503, "busy")
    assert error.retry_after > 0
    monkeypatch.undo()
    known(caller, header)


def test_a_key_may_use_only_its_models(caller: SiteCaller, ann: User) -> None:
    """A key lists them by the names that clients write; what is asked about is the provider's name."""
    _, header = key_of(ann, only_models=["fast", "large-1"])
    who = known(caller, header)
    for model in ("small-1", "large-1", ""):
        caller.may(who, model)
    error = refused(caller, who, "huge-1")
    assert (error.status, error.code) == (403, "model_not_found")
    assert [caller.allows(who, model) for model in ("small-1", "huge-1")] == [True, False]
    COUNTS.flush()
    assert counted("model", "requests") == [("", 1), ("large-1", 1), ("small-1", 1)]


@pytest.mark.usefixtures("caller")  # which closes the connection
def test_an_alias_may_be_the_name_of_another_model(ann: User) -> None:
    """To clients "b" is the model c then, and a key for it does not open the model b."""
    caller = SiteCaller({"a": "b", "b": "c"})
    for listed, may in (("a", ["b"]), ("b", ["c"]), ("c", ["c"])):
        who = known(caller, key_of(ann, only_models=[listed])[1])
        assert [model for model in "abc" if caller.allows(who, model)] == may


def test_a_person_is_the_same_with_each_key(caller: SiteCaller, ann: User) -> None:
    people = [caller.person(known(caller, key_of(user)[1])) for user in (ann, ann, person("bob"))]
    assert people[0] == people[1] != people[2]


@pytest.mark.parametrize("whose", ["key", "person", "site"])
def test_requests_of_a_minute(caller: SiteCaller, ann: User, whose: str, half_past: float, settings: Any) -> None:
    if whose == "person":
        Quota.objects.create(user=ann, requests_a_minute=2)
    if whose == "site":
        settings.AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE = 2
    _, header = key_of(ann, requests_a_minute=2 if whose == "key" else None)
    who = known(caller, header)
    caller.may(who, MODEL)
    caller.may(who, MODEL)
    error = refused(caller, who)
    assert (error.status, error.code, error.retry_after) == (429, "rate_limit_exceeded", 30)
    assert error.message.startswith("This key sent 2 requests" if whose == "key" else "You sent 2 requests")
    other = known(caller, key_of(ann)[1])
    if whose == "key":
        caller.may(other, MODEL)
    else:
        refused(caller, other)


def test_the_next_minute_begins_anew(
    caller: SiteCaller, ann: User, half_past: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = known(caller, key_of(ann, requests_a_minute=1)[1])
    caller.may(who, MODEL)
    refused(caller, who)
    monkeypatch.setattr("conversations.accounts.standing.time.time", lambda: half_past + 30)
    caller.may(who, MODEL)
    assert refused(caller, who).retry_after == 60
    COUNTS.flush()
    assert counted("requests") == [(1,), (1,)]


def used_before(user: User, hours: float, key: int, **columns: int) -> None:
    minute = (timezone.now() - timedelta(hours=hours)).replace(second=0, microsecond=0)
    PassthroughUsage.objects.create(user=user, key_id=key, model=MODEL, minute=minute, **columns)


def test_requests_of_a_day_fall_out_by_themselves(caller: SiteCaller, ann: User) -> None:
    """The client is told when enough have; what is a day old does not count."""
    key, header = key_of(ann, requests_a_day=10)
    used_before(ann, 25, key.pk, requests=100)
    used_before(ann, 23, key.pk, requests=4)
    used_before(ann, 22, key.pk, requests=5)
    caller.may(known(caller, header), MODEL)
    COUNTS.flush()
    used_before(ann, 0.1, key.pk, requests=3)
    ann.save()  # after which the keys are looked up again
    error = refused(caller, known(caller, header))
    assert (error.status, error.code) == (429, "quota_exceeded")
    assert 3600 - 90 < error.retry_after <= 3600  # of 13, the 4 of 23 hours ago are enough
    Quota.objects.create(user=ann, requests_a_day=8)
    PassthroughUsage.objects.filter(requests=5).update(requests=1)
    ann.save()
    assert refused(caller, known(caller, header)).message.startswith("You sent 9 requests in the last 24 hours")


def test_a_key_without_limits_hides_no_limit_of_another(caller: SiteCaller, ann: User) -> None:
    """What was used within a day is read only where there is a limit: then for all keys of the person."""
    key, header = key_of(ann, requests_a_day=10)
    used_before(ann, 5, key.pk, requests=10)
    who = known(caller, header)
    known(caller, key_of(ann)[1])
    assert refused(caller, who).code == "quota_exceeded"


def test_tokens_of_a_person_are_those_of_conversations_too(caller: SiteCaller, ann: User) -> None:
    Quota.objects.create(user=ann, tokens_a_day=100)
    time_ = timezone.now() - timedelta(hours=20)
    Usage.objects.create(conversation_id=1, prompt_id=1, path="1", user=ann, time=time_, input_tokens=80)
    who = known(caller, key_of(ann)[1])
    caller.may(who, MODEL)
    caller.used(who, MODEL, Tokens(10, 0, 9, 0))
    caller.may(who, MODEL)
    caller.used(who, MODEL, Tokens(1, 0, 0, 0))
    error = refused(caller, who)
    assert (error.code, error.retry_after) == ("quota_exceeded", 1)  # when there is room is not known yet
    ann.save()
    error = refused(caller, known(caller, key_of(ann)[1]))
    assert 4 * 3600 - 90 < error.retry_after <= 4 * 3600
    assert error.message.startswith("You used 100 tokens in the last 24 hours, and the limit is 100.")


def test_tokens_of_one_key_leave_the_others_alone(caller: SiteCaller, ann: User) -> None:
    first, second = (known(caller, key_of(ann, tokens_a_day=10)[1]) for _ in range(2))
    caller.may(first, MODEL)
    caller.used(first, MODEL, ANSWER)
    assert refused(caller, first).message.startswith("This key used 15 tokens")
    caller.may(second, MODEL)


def test_of_a_thousand_requests_at_once_as_many_begin_as_may(caller: SiteCaller, ann: User) -> None:
    """With two keys, of which one has a limit of its own."""
    Quota.objects.create(user=ann, requests_a_minute=0, requests_a_day=70)
    headers = [key_of(ann, requests_a_day=30)[1], key_of(ann)[1]]

    async def one(header: str) -> str:
        try:
            caller.may(await caller.authenticate(header), MODEL)
        except Refused as error:
            return error.code
        return header

    async def many() -> list[str]:
        return await asyncio.gather(*(one(headers[number % 2]) for number in range(1000)))

    came = Counter(asyncio.run(many()))
    assert came["quota_exceeded"] == 930
    assert came[headers[0]] <= 30
    COUNTS.flush()
    assert sorted(counted("requests")) == sorted((came[header],) for header in headers if came[header])


def test_it_costs_the_loop_next_to_nothing(caller: SiteCaller, ann: User) -> None:
    """A known key, its limits and its tokens: far below a tenth of a millisecond, and no query."""
    Quota.objects.create(user=ann, requests_a_minute=10**6)
    _, header = key_of(ann, requests_a_day=10**6, tokens_a_day=10**9)

    async def many() -> float:
        await caller.authenticate(header)
        began = time.thread_time()
        for _ in range(500):
            who = await caller.authenticate(header)
            caller.may(who, MODEL)
            caller.used(who, MODEL, ANSWER)
        return (time.thread_time() - began) / 500

    with CaptureQueriesContext(connection) as queries:
        seconds = min(asyncio.run(many()) for _ in range(3))
    assert not queries
    assert seconds < 0.000_1
