"""Batches: what starts, when, and what becomes of each line, whoever stops, dies or forbids meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from agents.engine.secrets import keep_secret
from conversations.backup.after_restore import make_safe
from conversations.erasure.conversations import erase
from conversations.erasure.people import erase_user
from conversations.erasure.steps import redact
from conversations.models import Conversation, Prompt, Quota, Step
from conversations.prompts import killswitch, signals
from conversations.prompts.idempotency import set_key
from conversations.prompts.start import begin_conversation, cancel_prompt
from conversations.prompts.startable import NotAllowed
from conversations.usage import quotas
from conversations.usage.quotas import OverQuota
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, at_once, pending
from tests.conversations.support import person
from tests.workflows import batches, shop
from tests.workflows.batches import now, of, parcel, runs, stands
from workflows.batches.standing import results_csv
from workflows.batches.starting import BatchKeyReused, advance_all, start_batch, stop_batch, why_no_batch
from workflows.models import Batch, BatchLine, WorkflowSetting

pytestmark = pytest.mark.django_db
SIX = ("paper", "pens", "ink", "rulers", "glue", "tape")


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch, workflows=batches.ALL):
        yield


def test_every_line_runs_once_in_a_conversation_of_its_own_five_at_a_time(ann: User, site: Site) -> None:
    batch = of(ann, *SIX, "chalk")
    assert stands(batch) == [*["queued"] * 5, "waits", "waits"]
    site.works()
    assert stands(batch) == ["completed"] * 7
    assert [line.result for line in now(batch).lines] == [f"Sent {item}." for item in (*SIX, "chalk")]
    made = runs(batch)
    assert len({run.conversation_id for run in made}) == 7
    assert {(run.asked_by, run.conversation.kind, run.policy) for run in made} == {(ann, "run", "workflow:shop.parcel")}
    assert [run.request_key for run in made] == [f"batch:{batch.pk}:{number}" for number in range(1, 8)]
    assert [verify(run.conversation_id).problems for run in made] == [[]] * 7


def test_one_that_fails_and_one_that_waits_hold_up_no_other(ann: User, site: Site) -> None:
    batch = of(ann, "gold", "glass", *SIX)
    site.works()
    assert stands(batch) == ["waiting_for_approval", "failed", *["completed"] * 6]
    assert "It broke." in now(batch).lines[1].reason
    site.approves(runs(batch)[0], ann)
    site.works()
    assert stands(batch)[0] == "completed"


def test_lines_that_wait_for_a_person_hold_their_places_and_those_that_sleep_do_not(ann: User, site: Site) -> None:
    batch = of(ann, *["cheese"] * 3, *["gold"] * 5, "paper")
    site.works()
    assert stands(batch) == [*["sleeping"] * 3, *["waiting_for_approval"] * 5, "waits"]
    cancel_prompt(runs(batch)[3].pk, ann)
    signals.swept.send_robust(None)
    site.works()
    assert stands(batch)[3:] == ["cancelled", *["waiting_for_approval"] * 4, "completed"]


def test_stopping_the_rest_lets_what_has_started_go_on(ann: User, site: Site) -> None:
    batch = of(ann, *SIX)
    stop_batch(batch)
    stop_batch(batch)
    site.works()
    assert stands(batch) == [*["completed"] * 5, "not_started"]
    assert "stopped" in now(batch).lines[5].reason


def test_stopping_everything_stops_what_waits_too(ann: User, site: Site) -> None:
    batch = of(ann, *["gold"] * 6)
    site.works()
    stop_batch(batch, running=True)
    assert stands(batch) == [*["cancelled"] * 5, "not_started"]
    assert now(batch).ended


def test_all_of_it_counts_as_one_turn_at_once(ann: User, site: Site) -> None:
    Quota.objects.create(user=ann, running_prompts=2)
    batch = of(ann, *SIX)
    assert (stands(batch).count("queued"), quotas.running(ann.pk)) == (5, 1)
    begin_conversation(ann, "Hello.")
    with pytest.raises(OverQuota):
        begin_conversation(ann, "One more.")
    signals.swept.send_robust(None)
    assert stands(batch).count("queued") == 5
    cancel_prompt(runs(batch)[0].pk, ann)
    signals.swept.send_robust(None)
    assert stands(batch) == ["cancelled", *["queued"] * 5]


def test_over_a_quota_its_lines_wait_and_start_by_themselves_after_that(ann: User, site: Site) -> None:
    Quota.objects.create(user=ann, running_prompts=1)
    message = begin_conversation(ann, "Hello.")
    batch = of(ann, "paper", "pens")
    assert stands(batch) == ["waits", "waits"]
    assert "which is the limit" in (now(batch).holds or "")
    cancel_prompt(message.pk, ann)
    signals.swept.send_robust(None)
    site.works()
    assert (stands(batch), now(batch).holds) == (["completed"] * 2, None)


def test_under_the_kill_switch_its_lines_wait(ann: User, site: Site) -> None:
    killswitch.turn_on(ann, "A test.")
    batch = of(ann, "paper")
    signals.swept.send_robust(None)
    assert stands(batch) == ["waits"]
    assert "A test" in (now(batch).holds or "")
    killswitch.turn_off(ann)
    signals.swept.send_robust(None)
    site.works()
    assert stands(batch) == ["completed"]


@pytest.mark.parametrize("lost", ["off", "permission", "account", "uninstalled"])
def test_a_right_that_is_lost_meanwhile_ends_the_rest(
    lost: str, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = of(ann, *SIX)
    changes: dict[str, dict[str, Any]] = {"off": {"enabled": False}, "permission": {"permission": "auth.add_user"}}
    if lost in changes:
        WorkflowSetting.objects.create(name="shop.parcel", **changes[lost])
    elif lost == "account":
        User.objects.filter(pk=ann.pk).update(is_active=False)
    else:
        monkeypatch.setattr("workflows.discovery.installed", dict)
    cancel_prompt(runs(batch)[0].pk, ann)
    signals.swept.send_robust(None)
    line = now(batch).lines[5]
    words = {"off": "turned this", "permission": "auth.add_user", "account": "deactivated", "uninstalled": "installed"}
    assert line.state == "not_started"
    assert words[lost] in line.reason
    assert now(batch).counts["waits"] == 0


def test_a_line_that_no_longer_fits_is_not_started_and_the_others_are(ann: User, site: Site) -> None:
    """The site was deployed with another model of the input while it waited."""
    batch = of(ann, *SIX, "chalk")
    BatchLine.objects.filter(batch=batch, number=6).update(input='{"item": "p"}')
    site.works()
    assert stands(batch) == [*["completed"] * 5, "not_started", "completed"]
    assert "item" in now(batch).lines[5].reason


def test_who_may_not_run_it_starts_none(ann: User) -> None:
    WorkflowSetting.objects.create(name="shop.parcel", enabled=False)
    with pytest.raises(NotAllowed):
        of(ann, "paper")
    assert not Batch.objects.exists()


def test_the_same_form_sent_twice_is_one_batch(ann: User) -> None:
    first = of(ann, "paper", key="k")
    assert of(ann, "paper", key="k") == first
    with pytest.raises(BatchKeyReused):
        of(ann, "pens", key="k")
    assert (Batch.objects.count(), Prompt.objects.count()) == (1, 1)


def test_a_batch_that_is_stored_is_told_whatever_its_first_lines_meet(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told that nothing was stored sends it again, and has two."""

    def busy(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("workflows.batches.starting.start_run", busy)
        batch = of(ann, "paper")
    assert stands(batch) == ["waits"]
    signals.swept.send_robust(None)
    site.works()
    assert stands(batch) == ["completed"]


def test_what_needs_somebody_there_or_nothing_at_all_takes_no_table() -> None:
    words = {batches.key: "secret", batches.clean: "chats", batches.attended: "somebody", shop.fail: "no input"}
    assert [each.name for each, word in words.items() if word not in (why_no_batch(each) or "")] == []
    assert why_no_batch(parcel) is None


def test_no_client_has_a_key_of_a_batch(ann: User) -> None:
    with pytest.raises(ValueError, match="batch:"):
        set_key(Prompt(asked_by=ann), "batch:1:1", [])
    with pytest.raises(ValueError, match="batch:"):
        begin_conversation(ann, "Hello.", key="batch:1:1")


def test_erasing_or_redacting_a_run_takes_its_input_out_of_the_batch(ann: User, site: Site) -> None:
    batch = of(ann, "paper", "pens")
    site.works()
    erased, redacted = runs(batch)
    erase(erased.conversation, ann)
    call = Step.objects.get(prompt=redacted, path="", type="action_call")
    redact(redacted.conversation, [call.seq], ann, "Asked for.")
    lines = now(batch).lines
    assert [(line.state, line.input, line.redacted) for line in lines] == [
        ("deleted", None, False),
        ("completed", None, True),
    ]
    assert "paper" not in results_csv(now(batch))
    assert not BatchLine.objects.exclude(input="").exists()
    advance_all()
    assert stands(batch) == ["deleted", "completed"]
    assert not BatchLine.objects.exclude(why_not="").exists()  # nobody tried to start it again


def test_a_person_who_is_erased_takes_their_batches_along(ann: User, site: Site) -> None:
    of(ann, *SIX)
    other = of(person("bob"), "paper")
    erase_user(ann, User.objects.create_superuser("chief"))
    assert list(Batch.objects.all()) == [other]
    assert not Conversation.objects.filter(owner=ann).exists()


def test_a_restored_site_starts_no_line_that_may_have_run_since(ann: User, site: Site) -> None:
    batch = of(ann, *SIX)
    make_safe("Monday")
    site.works()
    line = now(batch).lines[5]
    assert line.state == "not_started"
    assert "Monday" in line.reason


def test_a_secret_of_the_site_is_in_no_line_that_waits(ann: User) -> None:
    killswitch.turn_on(ann, "A test.")
    keep_secret(["hunter2hunter2"])
    try:
        batch = of(ann, "hunter2hunter2")
    finally:
        keep_secret([])
    assert "hunter2" not in BatchLine.objects.get(batch=batch).input


@pytest.mark.django_db(transaction=True)
def test_two_who_look_at_once_start_no_line_twice_and_never_a_sixth(ann: User, site: Site) -> None:
    killswitch.turn_on(ann, "A test.")
    batch = of(ann, *["gold"] * 12)
    killswitch.turn_off(ann)
    assert at_once(*[advance_all] * 4) == [None] * 4
    assert stands(batch) == [*["queued"] * 5, *["waits"] * 7]
    site.works()
    for run in runs(batch):
        cancel_prompt(run.pk, ann)
    at_once(*[advance_all] * 4)
    assert stands(batch) == [*["cancelled"] * 5, *["queued"] * 5, *["waits"] * 2]
    assert Prompt.objects.count() == len(set(Prompt.objects.values_list("request_key", flat=True))) == 10


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_while_another_has_the_batch_no_line_starts_although_there_are_places(ann: User, site: Site) -> None:
    killswitch.turn_on(ann, "A test.")
    batch = of(ann, "paper")
    killswitch.turn_off(ann)
    with transaction.atomic():
        Batch.objects.select_for_update().get(pk=batch.pk)
        assert at_once(advance_all, advance_all) == [None, None]
        assert stands(batch) == ["waits"]
    assert at_once(*[advance_all] * 4) == [None] * 4
    assert (stands(batch), Prompt.objects.count()) == (["queued"], 1)


@pytest.mark.parametrize("record", range(1, 12))
def test_wherever_it_dies_a_line_has_its_run_or_waits(
    record: int, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction of a line fails at one of its writes: nothing of it is left, and the next look starts it."""
    killswitch.turn_on(ann, "A test.")
    batch = of(ann, "paper")
    killswitch.turn_off(ann)
    writes = 0

    class Died(BaseException):
        pass

    def dies(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal writes
        if sql.startswith(("INSERT", "UPDATE")):
            writes += 1
            if writes == record:
                raise Died
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(dies):
            advance_all()
    except Died:
        assert (stands(batch), Prompt.objects.count()) == (["waits"], 0)
    advance_all()
    assert (stands(batch), Prompt.objects.count()) == (["queued"], 1)
    site.works()
    assert stands(batch) == ["completed"]


def test_a_batch_that_is_done_is_not_looked_at(ann: User, site: Site, django_assert_num_queries: Any) -> None:
    of(ann, "paper")
    site.works()
    with django_assert_num_queries(1):
        advance_all()


def test_a_sleep_of_a_line_ends_like_any_other(ann: User, site: Site) -> None:
    batch = of(ann, "cheese")
    site.works()
    run = runs(batch)[0]
    assert run.wake_at
    assert run.wake_at > timezone.now() + timedelta(hours=23)
    assert pending(run) == []
    assert start_batch(parcel, ann, [{"item": "paper"}]).pk != batch.pk
