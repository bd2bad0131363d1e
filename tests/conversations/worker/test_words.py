"""How few words a round has with the database, and that what is kept in memory holds only until people change it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Skill
from conversations.approvals.gatekeeper import OWNER_GONE
from conversations.database import changes
from conversations.ledger.claims import claim, claimable
from conversations.models import ChangeCount, Conversation, Prompt, Quota, Usage
from conversations.usage import quotas, storage
from conversations.worker.drafts import Drafts
from conversations.worker.kept import Kept
from conversations.worker.loading import load
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, at_once, in_this_thread
from tests.engine.cast import World
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

READING = [says("", call("fx.read", a=number)) for number in range(1, 5)]


@contextmanager
def between(world: World, *points: Callable[[], object]) -> Iterator[None]:
    """While the n-th reading runs, call the n-th of these."""
    left = list(points)

    async def next_point(_call: Any) -> None:
        if left:
            await in_this_thread(left.pop(0))

    world.at["fx.read"] = next_point
    yield
    assert not left


def run(prompt: Prompt, kept: Kept) -> None:
    """Run it as the worker of these does."""
    assert claimable(10) == [prompt.pk]
    held = claim(prompt.pk, "worker:test", 30.0)
    assert held
    async_to_sync(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True, kept=kept))()


def words(queries: list[dict[str, str]]) -> list[str]:
    """Return the statements, but for the ends of transactions. Those of one `executemany` are one."""
    plain = [re.sub(r"^\d+ times: ", "", each["sql"]) for each in queries]
    return [sql for sql in plain if not re.match(r"(BEGIN|COMMIT|SAVEPOINT|RELEASE)\b", sql)]


def test_a_round_has_at_most_eleven_words_with_the_database_and_none_through_the_orm(site: Site, ann: User) -> None:
    """And two records: its start, with the result of what was read before, and its answer."""
    prompt, kept, marks = site.starts(ann, *READING, says("Done.")), Kept(), list[int]()
    with (
        CaptureQueriesContext(connection) as seen,
        between(site.world, *[lambda: marks.append(len(seen))] * len(READING)),
    ):
        run(prompt, kept)
    prompt.refresh_from_db()
    assert prompt.state == "completed"
    for one, next in pairwise(marks):
        said = words(seen.captured_queries[one:next])
        assert len(said) <= 11, said
        assert not [sql for sql in said if '"conversations_' in sql or '"agents_' in sql], said
        assert len([sql for sql in said if sql.startswith("UPDATE conversations_conversation")]) == 2


def test_the_first_turn_of_a_conversation_asks_for_nothing_that_cannot_be_there(site: Site, ann: User) -> None:
    """No history, states or drafts; its end releases it; and nothing of this is a query of the ORM."""
    kept = Kept()
    run(site.starts(ann, says("Hello.")), kept)
    prompt = site.starts(ann, says("Hello."))
    with CaptureQueriesContext(connection) as seen:
        run(prompt, kept)
    said = words(seen.captured_queries)
    assert len(said) <= 20, said
    assert not [sql for sql in said if '"conversations_' in sql or "type = 'state'" in sql], said
    assert len([sql for sql in said if "lease_until = 0" in sql]) == 1


def counted() -> int:
    return ChangeCount.objects.values_list("number", flat=True).first() or 0


@pytest.mark.parametrize(
    "change",
    [
        lambda ann: User.objects.filter(pk=ann.pk).update(is_active=False),
        lambda ann: Quota.objects.create(user=ann, tokens_a_day=1),
        lambda ann: Quota.objects.bulk_create([Quota(user=ann)]),
        lambda ann: Skill.objects.create(name="tables", description="Tables.", body="Draw them."),
    ],
    ids=["a person is deactivated", "a limit", "limits in bulk", "a skill"],
)
def test_what_people_change_counts(ann: User, change: Callable[[User], object]) -> None:
    before = counted()
    change(ann)
    assert counted() > before
    for model in (Quota, Skill):
        between_these = counted()
        if model.objects.exists():
            model.objects.all().delete()
            assert counted() > between_these


def test_no_turn_counts_as_a_change(site: Site, ann: User) -> None:
    before = counted()
    assert site.ended(ann, *READING[:1], says("", call("shell.run", command="ls")), says("Done.")).state == "completed"
    assert counted() == before


def test_a_trigger_that_is_missing_is_named() -> None:
    assert changes.missing(connection) == []
    name, (table, _) = next(iter(changes.triggers(connection).items()))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{f' ON {table}' if connection.vendor == 'postgresql' else ''}")
    (error,) = [each for each in changes_check() if each.id == "conversations.E003"]
    assert name in error.msg
    assert "migrate" in str(error.hint)
    before = counted()
    changes.install()
    assert changes.missing(connection) == []
    assert counted() > before, "something may have changed that nobody counted"


def test_a_trigger_that_does_something_else_counts_as_missing() -> None:
    """One of an earlier version, for example: only its name is the same."""
    name, (table, sql) = next(each for each in changes.triggers(connection).items() if "is_active" in each[1][1])
    postgres = connection.vendor == "postgresql"
    for other in (sql.replace("is_active", "username"), sql.replace("AFTER", "BEFORE")):
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER {name}{f' ON {table}' if postgres else ''}")
            cursor.execute(other)
        assert changes.missing(connection) == [name]
        changes.install()
        assert changes.missing(connection) == []


@pytest.mark.postgres
def test_triggers_whose_function_does_something_else_count_as_missing() -> None:
    with connection.cursor() as cursor:
        nothing = "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        cursor.execute(f"CREATE OR REPLACE FUNCTION {changes.FUNCTION}() {nothing}")
    assert changes.missing(connection) == list(changes.triggers(connection))
    changes.install()
    assert changes.missing(connection) == []


@pytest.mark.postgres
def test_a_table_that_is_emptied_at_once_counts() -> None:
    for model in (Quota, Skill):
        before = counted()
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {model._meta.db_table}")
        assert counted() > before


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_no_change_is_missed_while_triggers_are_replaced(ann: User) -> None:
    """A host that is started migrates, while the workers of others run."""
    done = threading.Event()

    def changing() -> int:
        unseen = 0
        while not done.is_set():
            with transaction.atomic():
                before = counted()
                User.objects.filter(pk=ann.pk).update(is_active=False)
                unseen += counted() == before
        return unseen

    def replacing() -> None:
        try:
            for _ in range(20):
                changes.install()
        finally:
            done.set()

    assert at_once(changing, replacing) == [0, None]


def changes_check() -> list[Any]:
    from conversations.database.checks import changes_are_counted

    return list(changes_are_counted(["default"]))


def test_a_limit_that_is_set_while_a_turn_runs_ends_it(site: Site, ann: User) -> None:
    """Though limits are kept in memory: the next record tells that they changed. A drain hears of it sooner."""
    prompt, kept = site.starts(ann, *READING, says("Done.")), Kept()
    used = Usage(conversation_id=prompt.conversation_id, prompt_id=prompt.pk, user=ann, time=timezone.now())
    used.input_tokens = 100
    used.save()
    with between(site.world, lambda: None, lambda: Quota.objects.create(user=ann, tokens_a_day=50)):
        run(prompt, kept)
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("failed", "quota")
    assert prompt.steps.filter(type="action_start").exclude(path="").count() == 3  # rounds that were asked


def test_what_a_turn_uses_counts_at_once(site: Site, ann: User) -> None:
    """The total of its owner's tokens may be some seconds old, but for what this worker has used since."""
    Quota.objects.create(user=ann, tokens_a_day=40)
    prompt = site.starts(ann, *READING, says("Done."))
    run(prompt, Kept())
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("failed", "quota")
    assert Usage.objects.filter(prompt_id=prompt.pk).count() == 3  # of 15 tokens each


def test_nothing_is_read_for_a_person_who_left_meanwhile(site: Site, ann: User) -> None:
    """C11, also for calls that only read, whose owner is kept in memory."""
    prompt, kept = site.starts(ann, *READING, says("Done.")), Kept()
    leave = lambda: User.objects.filter(pk=ann.pk).update(is_active=False)  # noqa: E731
    with between(site.world, lambda: None, leave):
        run(prompt, kept)
    refused = prompt.steps.filter(type="action_result", path__in=["3/0", "4/0"])
    assert [step.content["message"] for step in refused] == [OWNER_GONE] * 2
    assert site.world.done == [("fx.read", 1), ("fx.read", 2)]


def test_what_does_more_than_read_asks_anew_whether_its_owner_is_there(site: Site, ann: User) -> None:
    """C11: though nothing was recorded since they left, and nobody has told the worker."""
    answer = says("", call("fx.read", a=1), call("report.write", name="q"))
    prompt, kept = site.starts(ann, answer, says("Done.")), Kept()
    with between(site.world, lambda: User.objects.filter(pk=ann.pk).update(is_active=False)):
        run(prompt, kept)
    (refused,) = prompt.steps.filter(type="action_result", path="1/1")
    assert refused.content["message"] == OWNER_GONE
    assert site.world.done == [("fx.read", 1)]


def test_a_total_is_read_again_after_a_while_and_what_the_process_used_counts_at_once(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, read = [100.0], list[int]()
    monkeypatch.setattr("conversations.worker.kept.time.monotonic", lambda: now[0])

    def total(user: int) -> int:
        read.append(user)
        return 10 * len(read)

    kept = Kept()
    kept.add(total, ann.pk, 5)  # nothing to add it to: the total will have it
    assert kept.recent(total, ann.pk) == 10
    kept.add(total, ann.pk, 5)
    now[0] += 4.9
    assert kept.recent(total, ann.pk) == 15
    now[0] += 0.1
    assert kept.recent(total, ann.pk) == 20
    assert kept.recent(total, ann.pk + 1) == 30


def test_what_a_workspace_holds_gives_it_no_room_of_others(site: Site, ann: User) -> None:
    """A total that was kept knows nothing of what its last turn wrote, and would be too small without it."""
    Quota.objects.create(user=ann, storage_mb=10)
    prompt, kept = site.ended(ann, says("Hello.")), Kept()
    other = site.ended(ann, says("Hello.")).conversation
    Conversation.objects.filter(pk=other.pk).update(workspace_bytes=3 * storage.MB)
    assert load(prompt.pk, kept).space.left == 7 * storage.MB
    Conversation.objects.filter(pk=prompt.conversation_id).update(workspace_bytes=6 * storage.MB)
    assert load(prompt.pk, kept).space.left == 7 * storage.MB


def test_what_is_kept_is_asked_for_again_only_after_a_change(ann: User) -> None:
    kept = Kept()
    with CaptureQueriesContext(connection) as seen:
        for _ in range(3):
            kept.see(7)
            assert kept.settled(quotas.limits, ann.pk).tokens_a_day == 0
            assert kept.at_hand(quotas.limits, ann.pk).tokens_a_day == 0
    assert len(seen) == 1
    Quota.objects.create(user=ann, tokens_a_day=9)
    kept.see(8)
    with pytest.raises(KeyError):
        kept.at_hand(quotas.limits, ann.pk)
    assert kept.settled(quotas.limits, ann.pk).tokens_a_day == 9
    kept.see(7)  # a backup was restored
    with pytest.raises(KeyError):
        kept.at_hand(quotas.limits, ann.pk)


def test_many_people_do_not_fill_the_memory(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.worker.kept.MOST", 3)
    kept = Kept()
    for user in range(1, 8):
        kept.settled(str, user)
        kept.recent(storage.used, user)
    assert max(len(kept._settled), len(kept._recent)) <= 3
