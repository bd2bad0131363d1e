"""A session that hangs has the row of one conversation: its turn waits, and nothing else does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from pytest_django.fixtures import Settings

from agents.engine.errors import Behind
from agents.engine.tools.tool import ToolCall
from conversations.database import retries
from conversations.ledger.claims import Claim, renew
from conversations.ledger.journal import append
from conversations.ledger.locked import locked_turn
from conversations.models import Conversation, Draft, File, Prompt, State
from conversations.prompts.killswitch import turn_on
from conversations.prompts.start import cancel_prompt
from conversations.verification.stored import verify
from conversations.worker import drafts
from conversations.worker.leases import LeaseKeeper
from tests.agentsite.processes import wait_for
from tests.conversations.recorded import Site, at_once, in_this_thread, place, record, said, taken
from tests.conversations.worker.test_drain import drained
from tests.engine.cast import Name
from tests.engine.support import call, says

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
SCRIPT = (says("", call("report.write", name="q")), says("Done."))
MOST_SECONDS = 10.0
"""In which whatever runs is to be stopped."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.05)


def ended(*prompts: Prompt) -> bool:
    return not Prompt.objects.filter(pk__in=[prompt.pk for prompt in prompts], ended_at=None).exists()


class Locked:
    """Turns whose tools run, until the conversation of the first is locked; those of `endless` run on."""

    def __init__(self, site: Site, ann: User, turns: int, endless: int) -> None:
        self.prompts = [site.starts(ann, *SCRIPT) for _ in range(turns)]
        self._endless = {prompt.pk for prompt in self.prompts[turns - endless :]}
        self._running: set[int] = set()
        self._is_locked = threading.Event()
        self.seconds = 0.0
        site.world.at["report.write"] = self._work

    async def _work(self, call: ToolCall[Name]) -> None:
        self._running.add(call.services.prompt)
        await asyncio.to_thread(self._is_locked.wait, 30)
        if call.services.prompt in self._endless:
            await asyncio.Event().wait()

    def until(self, others_ended: Callable[[], object], stops: Callable[[], object]) -> None:
        """A drain runs them; while the first is locked, others are stopped, and end."""

        def hangs() -> None:
            wait_for(lambda: len(self._running) == len(self.prompts))
            with transaction.atomic():
                Conversation.objects.select_for_update().get(pk=self.prompts[0].conversation_id)
                self._is_locked.set()
                began = time.monotonic()
                assert not [error for error in at_once(stops) if isinstance(error, Exception)]
                wait_for(others_ended)
                self.seconds = time.monotonic() - began

        assert at_once(drained, hangs) == [len(self.prompts), None]
        for prompt in self.prompts:
            prompt.refresh_from_db()
            assert verify(prompt.conversation_id).problems == []


def test_it_waits_with_its_claim_while_others_go_on_and_are_stopped(ann: User, site: Site) -> None:
    turns = Locked(site, ann, turns=3, endless=1)
    held, other, stopped = turns.prompts
    turns.until(lambda: ended(other, stopped), lambda: cancel_prompt(stopped.pk, ann))
    assert turns.seconds < MOST_SECONDS
    assert (other.state, stopped.state) == (State.COMPLETED, State.CANCELLED)
    assert (held.state, held.fence, held.strikes) == (State.COMPLETED, 1, 0)
    assert site.world.done == [("report.write", "q")] * 2


def test_the_kill_switch_waits_for_no_locked_turn(ann: User, site: Site) -> None:
    """Neither does whoever turns it on, nor the drain. The locked turn is stopped as well, and says so when it can."""
    turns = Locked(site, ann, turns=2, endless=2)
    held, other = turns.prompts
    turns.until(lambda: ended(other), lambda: turn_on(None, "A test of it."))
    assert turns.seconds < MOST_SECONDS
    assert (other.state, held.state, held.fence) == (State.CANCELLED, State.CANCELLED, 1)
    assert held.steps.filter(type="cancel").count() == other.steps.filter(type="cancel").count() == 1


def test_a_file_whose_row_waits_is_stored_once(ann: User, site: Site) -> None:
    """Its tool ran, and nobody is asked what became of it."""
    turns = Locked(site, ann, turns=2, endless=0)
    turns.until(lambda: ended(turns.prompts[1]), lambda: None)
    assert [prompt.fence for prompt in turns.prompts] == [1, 1]
    names = sorted(str(name) for name in File.objects.values_list("content", flat=True))
    assert len(set(names)) == 2


def test_drafts_of_others_are_written(ann: User, site: Site) -> None:
    """Those of the locked conversation are kept for later."""
    held, other = (taken(site.starts(ann, *SCRIPT)) for _ in range(2))
    growing = drafts.Drafts(in_this_thread)

    def write() -> bool:
        return async_to_sync(growing.write)()

    for claim in (held, other):
        growing.of(claim).add("1", "One ", 1)
    with transaction.atomic():
        Conversation.objects.select_for_update().get(pk=held.conversation)
        assert at_once(write) == [False]
        assert list(Draft.objects.values_list("prompt_id", flat=True)) == [other.prompt]
    growing.of(held).add("1", "two.", 1)
    assert write()
    assert dict(Draft.objects.values_list("prompt_id", "text")) == {held.prompt: "One two.", other.prompt: "One "}


def test_leases_of_others_are_renewed_and_none_counts_as_lost(ann: User, site: Site, settings: Settings) -> None:
    """A worker whose leases are nearly over begins no effects, and loses its turns."""
    settings.AGENTSITE_RENEW_SECONDS = 0.02
    held, other = (taken(site.starts(ann, *SCRIPT)) for _ in range(2))
    lost: list[Claim] = []

    def hangs() -> None:
        with transaction.atomic():
            Prompt.objects.select_for_update().get(pk=held.prompt)
            before = Prompt.objects.get(pk=other.prompt).lease_until
            with LeaseKeeper(lost.extend, lambda seconds: None) as leases:
                leases.hold(held)
                leases.hold(other)
                wait_for(lambda: Prompt.objects.get(pk=other.prompt).lease_until > before)

    began = time.monotonic()
    assert at_once(hangs) == [None]
    assert (lost, time.monotonic() - began < MOST_SECONDS) == ([], True)


def test_renewing_waits_for_a_turn_without_those_that_are_locked_after_it(ann: User, site: Site) -> None:
    """Records of several turns lock them by conversation: each would wait for the other."""
    first, *others = (taken(site.starts(ann, *SCRIPT)) for _ in range(8))

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction is told the same again
            cursor.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock' AND query LIKE 'UPDATE conversations_prompt SET lease_until%'"
            )
            return bool(cursor.fetchall())

    def locks() -> Any:
        with transaction.atomic():
            Prompt.objects.select_for_update().get(pk=first.prompt)
            locked.set()
            wait_for(waits)
            rows = Prompt.objects.select_for_update(nowait=True).filter(pk__in=[each.prompt for each in others])
            assert len(rows) == len(others)

    Prompt.objects.filter(pk=first.prompt).update(strikes=0)  # its row is the last in the table now
    held, locked = {first, *others}, threading.Event()
    assert at_once(locks, lambda: renew(held if locked.wait(30) else (), 30)) == [None, {each.prompt for each in held}]


def test_a_worker_that_is_behind_waits_for_nobody_with_the_row_of_its_turn(ann: User, site: Site) -> None:
    """Whoever has the conversation, and writes to the turn next, would wait for it, and it for them."""
    prompt = site.starts(ann, *SCRIPT)
    held, behind = taken(prompt), place(prompt)
    with locked_turn(prompt.pk) as turn:
        turn.append([said("Meanwhile.")])

    def writes() -> None:
        with transaction.atomic():
            append(behind, record(prompt, behind, said("Late.")), fence=held.fence)

    with locked_turn(prompt.pk) as turn:
        (error,) = at_once(writes)
        turn.append([said("And again.")])
    assert isinstance(error, Behind), error
    assert ([step.payload["text"] for step in error.steps], behind.seq) == (["Meanwhile."], error.last_id)
    assert verify(prompt.conversation_id).problems == []
