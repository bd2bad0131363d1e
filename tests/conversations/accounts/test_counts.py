"""What was used under /v1 reaches the table, whatever happens on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.passthrough.caller import Tokens
from agents.passthrough.errors import Refused
from conversations.accounts import counts
from conversations.accounts.counts import COUNTS
from conversations.accounts.passthrough import SiteCaller
from conversations.erasure.people import erase_user
from conversations.models import ApiKey, PassthroughUsage, Quota
from conversations.usage import passthrough
from conversations.usage.passthrough import Counted, Place
from tests.agentsite.processes import free_port, wait_for
from tests.conversations.accounts.calling import ANSWER, MODEL, counted, key_of, known, refused
from tests.conversations.accounts.test_passthrough import REVOKES, elsewhere
from tests.conversations.recorded import at_once
from tests.conversations.support import person

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_a_key_used_is_in_the_table(caller: SiteCaller, ann: User) -> None:
    """By key, model and minute: one row, however often it is written."""
    key, header = key_of(ann)
    who = known(caller, header)
    for _ in range(3):
        caller.may(who, MODEL)
    caller.used(who, MODEL, ANSWER)
    COUNTS.flush()
    caller.used(who, MODEL, Tokens(1, 0, 1, 0, estimated=True))
    caller.used(who, MODEL, Tokens())  # of an error
    caller.may(who, "")
    COUNTS.flush()
    sums: dict[str, list[int]] = {}
    columns = ("requests", "answers", "estimated", "unpriced", "input_tokens", "cached_tokens", "output_tokens")
    for model, *row in counted("model", *columns, "reasoning_tokens"):  # in two rows if a minute ended meanwhile
        sums[model] = [sum(both) for both in zip(sums.get(model, [0] * len(row)), row, strict=True)]
    assert sums == {"": [1, 0, 0, 0, 0, 0, 0, 0], MODEL: [3, 2, 1, 2, 11, 4, 6, 2]}
    assert set(counted("user", "key_id", "key_name")) == {(ann.pk, key.pk, "laptop")}


def test_it_is_written_by_itself_soon(caller: SiteCaller, ann: User) -> None:
    caller.may(known(caller, key_of(ann)[1]), MODEL)
    wait_for(PassthroughUsage.objects.exists)


@pytest.mark.parametrize(
    ("address", "told"), [("https://api.openai.com/v1", [2 * 1_575_000, 0]), ("http://127.0.0.1:9/v1", [0, 2])]
)
def test_prices_are_those_of_the_address(
    caller: SiteCaller, ann: User, settings: Any, address: str, told: list[int]
) -> None:
    settings.OPENAI_BASE_URL = address
    who = known(caller, key_of(ann)[1])
    for _ in range(2):
        caller.used(who, "gpt-5", Tokens(1000, 600, 100, 50))
    COUNTS.flush()
    rows = counted("cost_nano_usd", "unpriced")
    assert [sum(row[0] for row in rows), sum(row[1] for row in rows)] == told


def test_what_nobody_would_believe_fits_in(caller: SiteCaller, ann: User) -> None:
    who = known(caller, key_of(ann)[1])
    for model in ("a\x00b\ud800", "x" * 1000):
        caller.may(who, model)
        caller.used(who, model, Tokens(10**30, -5, 10**30, 0))
    COUNTS.flush()
    models = counted("model", "answers", "cached_tokens")
    assert models == [("a\ufffdb\ufffd", 1, 0), ("x" * 200, 1, 0)]


def test_models_that_do_not_exist_do_not_fill_the_table(caller: SiteCaller, ann: User) -> None:
    who = known(caller, key_of(ann)[1])
    for number in range(500):
        caller.may(who, f"no-{number}")
    caller.used(who, MODEL, ANSWER)  # one that does has its name
    COUNTS.flush()
    assert [model for model, answers in counted("model", "answers") if answers] == [MODEL]
    assert sum(requests for (requests,) in counted("requests")) == 500
    assert PassthroughUsage.objects.count() <= 2 * 22  # a minute may end meanwhile


def failing(times: int, then: Callable[..., None]) -> Callable[..., None]:
    """Fail so often as if somebody held the lock of the database."""
    left = [times]

    def add(rows: Any) -> None:
        then(rows)  # what was written is undone with the transaction
        left[0] -= 1
        if left[0] >= 0:
            raise OperationalError("database is locked")

    return add


def test_a_failed_write_is_tried_again(
    caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost or counted twice, neither in the table nor for the limits meanwhile."""
    monkeypatch.setattr(counts, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(passthrough, "add", failing(3, passthrough.add))
    who = known(caller, key_of(ann, requests_a_day=2)[1])
    caller.may(who, MODEL)
    wait_for(lambda: "cannot be written" in caplog.text)
    ann.save()
    who = known(caller, key_of(ann)[1])
    caller.used(who, MODEL, ANSWER)
    wait_for(PassthroughUsage.objects.exists)
    COUNTS.flush()
    assert sum(row[0] for row in counted("requests")) == 1
    assert sum(row[0] for row in counted("input_tokens")) == 10
    assert caplog.text.count("cannot be written") == 1


def test_what_waits_too_long_takes_no_more_room(caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "ROWS_MOST", 5)
    monkeypatch.setattr(counts, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(passthrough, "add", failing(1, passthrough.add))
    with COUNTS.lock:
        for minute in range(100, 110):
            COUNTS.add_request(Place(ann.pk, 1, MODEL, minute))
    wait_for(PassthroughUsage.objects.exists)
    assert counted("minute__minute", "requests") == [(49, 10)]


def test_a_row_that_the_database_refuses_holds_up_no_other(
    caller: SiteCaller, ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    with COUNTS.lock:
        COUNTS.add_request(Place(0, 1, MODEL, 100))  # of nobody
        COUNTS.add_request(Place(ann.pk, 2, MODEL, 100))
    COUNTS.flush()
    assert counted("key_id", "requests") == [(2, 1)]
    assert "was refused by the database" in caplog.text


def test_what_was_written_alone_in_vain_is_tried_again(
    caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By itself, without another request."""
    monkeypatch.setattr(counts, "AGAIN_SECONDS", 0.01)
    add, failures = passthrough.add, [OperationalError("database is locked")]

    def breaks_once(rows: Any) -> None:
        add(rows)
        if len(rows) == 1 and failures:
            raise failures.pop()

    monkeypatch.setattr(passthrough, "add", breaks_once)
    with COUNTS.lock:
        COUNTS.add_request(Place(ann.pk, 1, MODEL, 100))
        COUNTS.add_request(Place(0, 2, MODEL, 100))  # of nobody
    wait_for(PassthroughUsage.objects.exists)
    assert counted("key_id", "requests") == [(1, 1)]


def test_a_process_that_ends_tries_again(caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(passthrough, "add", failing(5, passthrough.add))
    caller.may(known(caller, key_of(ann)[1]), MODEL)
    COUNTS.flush()
    assert sum(requests for (requests,) in counted("requests")) == 1


def lock_key(user: User) -> None:
    assert ApiKey.objects.select_for_update().filter(user=user)


def lock_person(user: User) -> None:
    User.objects.select_for_update().get(pk=user.pk)


def lock_usage(user: User) -> None:
    assert PassthroughUsage.objects.filter(user=user).update(key_name="")


@pytest.mark.postgres
@pytest.mark.parametrize("lock", [lock_key, lock_person, lock_usage])
def test_who_looks_a_key_up_waits_for_nobody_who_holds_a_lock(
    caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch, lock: Callable[[User], None]
) -> None:
    """Such as those who erase a person. What others used is written meanwhile, and the person's own after that."""
    monkeypatch.setattr(counts, "AGAIN_SECONDS", 0.01)
    _, header = key_of(ann)
    bob = person("bob")
    key, bobs = key_of(bob)
    who, other = known(caller, header), known(caller, bobs)
    caller.may(who, MODEL)
    COUNTS.flush()
    with transaction.atomic():
        lock(ann)
        caller.may(who, MODEL if lock is lock_usage else "another")  # only a new row looks at the person's
        wait_for(waits_for_a_lock)
        asyncio.run(asyncio.wait_for(SiteCaller({}).authenticate(header), 5))
        caller.may(other, MODEL)
        wait_for(PassthroughUsage.objects.filter(user=bob).exists)
        assert sum(PassthroughUsage.objects.filter(user=ann).values_list("requests", flat=True)) == 1
        wait_for(waits_for_a_lock)
        elsewhere(REVOKES, key.pk)
        asyncio.run(asyncio.wait_for(refuses(SiteCaller({}), bobs), 5))
    wait_for(lambda: sum(PassthroughUsage.objects.filter(user=ann).values_list("requests", flat=True)) == 2)


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


async def refuses(caller: SiteCaller, header: str) -> None:
    with pytest.raises(Refused):
        await caller.authenticate(header)


COUNTS_TOO = """
from conversations.accounts.counts import COUNTS
from conversations.usage.passthrough import Place
for minute in range(100, 120):
    with COUNTS.lock:
        COUNTS.add_request(Place(int(sys.argv[2]), 1, "small-1", minute))
{end}
"""


@pytest.mark.parametrize("end", ["", "COUNTS.flush(); os._exit(0)"])
def test_a_process_that_ends_has_written_everything(caller: SiteCaller, ann: User, end: str) -> None:
    """Several add to the same rows at the same time."""
    at_once(*[lambda: elsewhere(COUNTS_TOO.format(end=end), ann.pk) for _ in range(3)])
    assert counted("requests") == [(3,)] * 20


WEB = """
import signal, socket, threading
from contextlib import suppress
from conversations.accounts import counts
from conversations.usage.passthrough import Place
from agentsite.web import run
counts.PAUSE_SECONDS = 3600
user = int(sys.argv[2])
del sys.argv[1:]
def counts_and_stops():
    answer = b""
    while not answer:
        with suppress(OSError), socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as asking:
            asking.sendall(b"GET /healthz HTTP/1.0\\r\\n\\r\\n")
            answer = asking.recv(1)
    with counts.COUNTS.lock:
        counts.COUNTS.add_request(Place(user, 1, "small-1", 100))
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=counts_and_stops, daemon=True).start()
run()
"""


def test_a_web_server_that_stops_writes_what_it_counted(
    caller: SiteCaller, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", str(free_port()))
    elsewhere(WEB, ann.pk)
    assert counted("requests") == [(1,)]


def test_others_count_too(caller: SiteCaller, ann: User) -> None:
    """What another process counted is known here with the next look."""
    key, header = key_of(ann, requests_a_day=3)
    caller.may(known(caller, header), MODEL)
    COUNTS.flush()
    with transaction.atomic():
        passthrough.add({Place(ann.pk, key.pk, MODEL, int(time.time()) // 60): Counted(requests=2)})
    ann.save()
    assert refused(caller, known(caller, header)).code == "quota_exceeded"


def test_a_stream_that_ends_after_its_person_was_erased_names_nobody(caller: SiteCaller, ann: User) -> None:
    who = known(caller, key_of(ann, name="ann's laptop")[1])
    caller.may(who, MODEL)
    COUNTS.flush()
    assert {name for (name,) in counted("key_name")} == {"ann's laptop"}
    erase_user(ann, person("chief", is_superuser=True))
    caller.used(who, MODEL, ANSWER)
    caller.used(who, "another", ANSWER)
    COUNTS.flush()
    assert {name for (name,) in counted("key_name")} == {""}
    assert sum(tokens for (tokens,) in counted("input_tokens")) == 20


LIMITS = st.none() | st.integers(1, 6)
MOVES = st.lists(
    st.tuples(st.sampled_from(["may", "may", "may", "used", "flush", "look"]), st.integers(0, 1), st.integers(1, 3)),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=MOVES,
    keys=st.tuples(LIMITS, LIMITS),
    tokens=st.tuples(LIMITS, LIMITS),
    person_limits=st.tuples(LIMITS, LIMITS),
)
def test_no_request_too_many_is_admitted_and_no_token_lost(
    caller: SiteCaller,
    moves: list[tuple[str, int, int]],
    keys: tuple[int | None, int | None],
    tokens: tuple[int | None, int | None],
    person_limits: tuple[int | None, int | None],
) -> None:
    """Two keys of one person, each with limits; requests, answers, writes and looks in any order."""
    owner = person(f"p{User.objects.count()}")
    Quota.objects.create(user=owner, requests_a_day=person_limits[0], tokens_a_day=person_limits[1])
    made = [key_of(owner, requests_a_day=keys[n], tokens_a_day=tokens[n]) for n in (0, 1)]
    whose = [known(caller, header) for _, header in made]
    sent, used = [0, 0], [0, 0]

    def is_full(n: int) -> bool:
        return any(
            most is not None and now >= most
            for now, most in (
                (sent[n], keys[n]),
                (used[n], tokens[n]),
                (sum(sent), person_limits[0]),
                (sum(used), person_limits[1]),
            )
        )

    for move, n, amount in moves:
        if move == "used":
            caller.used(whose[n], MODEL, Tokens(amount, 0, 0, 0))
            used[n] += amount
        elif move == "flush":
            COUNTS.flush()
        elif move == "look":
            owner.save()
            whose[n] = known(caller, made[n][1])
        else:
            try:
                caller.may(whose[n], MODEL)
            except Refused:
                assert is_full(n)
            else:
                assert not is_full(n)
                sent[n] += 1
    COUNTS.flush()
    for n, (key, _) in enumerate(made):
        rows = PassthroughUsage.objects.filter(key_id=key.pk)
        assert sum(rows.values_list("requests", flat=True)) == sent[n]
        assert sum(rows.values_list("input_tokens", flat=True)) == used[n]
