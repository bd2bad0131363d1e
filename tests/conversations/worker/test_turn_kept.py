"""A tool that ran, and whose file the database does not take: nobody may take its call for one that failed.

Nor may a database that goes away be taken for a worker that was lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import DataError, Error, OperationalError

from agents.engine.errors import Unrecorded
from agents.engine.interfaces.services import PlainServices
from agents.engine.runtime.recorder import Recorder
from conversations.approvals.decisions import decide
from conversations.database.threads import Write
from conversations.ledger import group_commit as journals
from conversations.ledger.claims import OUTAGES, STRIKES, Claim, release
from conversations.ledger.group_commit import GroupCommit, PromptJournal
from conversations.ledger.journal import append
from conversations.ledger.reading import read_steps
from conversations.models import File, Output, Prompt, Step
from conversations.verification.stored import verify
from conversations.worker import runner as runners
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, in_this_thread, pending, place, record, said, taken
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

SCRIPT = (says("A file.", call("report.write", name="q")), says("Done."))


def _raise(error: Error) -> NoReturn:
    raise error


def refuse(site: Site, *errors: Error) -> None:
    """The rows of files are refused with these, one after the other; then they are taken."""
    left, save = list(errors), File.save

    def fails(row: File, *args: Any, **more: Any) -> None:
        if left:
            raise left.pop()
        save(row, *args, **more)

    site.monkeypatch.setattr(File, "save", fails)


def gone() -> OperationalError:
    """The server was restarted."""
    error = OperationalError("server closed the connection unexpectedly")
    error.__cause__ = psycopg.OperationalError()
    return error


def run(held: Claim, write: Write = in_this_thread) -> Runner:
    """Run a claim as a worker does."""
    runner = Runner(held, "worker:test", write, Drafts(write), lambda: True)
    async_to_sync(runner)()
    return runner


def test_a_database_that_goes_away_after_the_effect_leaves_it_to_its_owner(ann: User, site: Site) -> None:
    """R15: the run breaks off as it does in a crash, and who takes the turn up asks whether it ran."""
    prompt = site.starts(ann, *SCRIPT)
    refuse(site, gone())
    run(taken(prompt))
    assert site.world.done == [("report.write", "q")]
    assert not Step.objects.filter(path="1/0", type="action_result").exists()
    site.works()
    (gate,) = pending(prompt)
    assert (gate.ask, site.world.done) == ("interrupted", [("report.write", "q")])
    assert verify(prompt.conversation_id).problems == []


def test_a_database_that_was_away_strikes_no_turn(ann: User, site: Site) -> None:
    """It is released when the database is back, so it goes on at once, and no worker counts as lost (I2)."""
    prompt = site.starts(ann, *SCRIPT)
    refuse(site, gone())
    site.monkeypatch.setattr(runners, "AWAY_SECONDS", 0)
    failures = [gone(), gone()]

    async def write(function: Callable[..., Any], *args: Any) -> Any:
        if args and getattr(args[0], "func", None) is release and failures:
            raise failures.pop()
        return await in_this_thread(function, *args)

    run(taken(prompt), write)
    assert (failures, Prompt.objects.get().lease_until) == ([], 0)
    assert taken(prompt).strikes == 0


def outages_at(site: Site, prompt: Prompt, point: str) -> None:
    """Claim and run the turn; the database goes away at this point of it, and comes back."""
    site.monkeypatch.setattr(runners, "AWAY_SECONDS", 0)

    async def write(function: Callable[..., Any], *args: Any) -> Any:
        if point in [getattr(each, "__name__", "") for each in (function, *args)]:
            raise gone()
        return await in_this_thread(function, *args)

    run(taken(prompt), write)
    prompt.refresh_from_db()


@pytest.mark.parametrize("point", ["_load", "_commit_next"])
def test_a_turn_at_which_the_database_goes_away_each_time_is_struck(ann: User, site: Site, point: str) -> None:
    """It may be what takes it down, so it is given up in the end, like one that takes its workers down."""
    prompt, strikes = site.starts(ann, *SCRIPT), list[int]()
    for _ in range(OUTAGES + 2):
        outages_at(site, prompt, point)
        strikes.append(prompt.strikes)
    assert strikes == [0] * (OUTAGES + 1) + [1]
    for _ in range(STRIKES - 1):
        outages_at(site, prompt, point)
    assert (prompt.state, prompt.stop_reason) == ("failed", "crash_loop")


def test_outages_between_which_there_is_progress_do_not_add_up(ann: User, site: Site) -> None:
    prompt = site.starts(ann, *SCRIPT)
    for _ in range(OUTAGES):
        outages_at(site, prompt, "_commit_next")
    held, at = taken(prompt), place(prompt)
    append(at, record(prompt, at, said()), fence=held.fence)
    release(held)
    outages_at(site, prompt, "_commit_next")
    assert (prompt.outages, prompt.lease_until) == (1, 0)


@pytest.mark.parametrize("n", range(2, 6))
@pytest.mark.parametrize("kept", [False, True])
def test_a_record_that_the_database_did_not_answer_is_no_fault_of_its_turn(
    ann: User, site: Site, n: int, kept: bool
) -> None:
    """Committed or not: the turn is released, and goes on from what there is."""
    prompt, left = site.starts(ann, *SCRIPT), [n]

    async def write(function: Callable[..., Any], *args: Any) -> Any:
        left[0] -= is_record(function)
        if is_record(function) and left[0] == 0 and not kept:
            raise gone()
        answer = await in_this_thread(function, *args)
        if is_record(function) and left[0] == 0:
            raise gone()
        return answer

    run(taken(prompt), write)
    prompt.refresh_from_db()
    assert (left, prompt.lease_until) == ([0], 0)
    site.works()
    for gate in pending(prompt):  # its start was recorded, and its result was not
        decide(gate.pk, ann, "it_ran" if site.world.done else "run_again", digest=gate.digest, via="page")
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.strikes, site.world.done) == ("completed", 0, [("report.write", "q")])
    assert verify(prompt.conversation_id).problems == []


def is_record(function: Callable[..., Any]) -> bool:
    return getattr(function, "__name__", "") == "_commit_next"


def test_a_record_that_was_kept_is_not_written_again(ann: User, site: Site) -> None:
    """A call beside the one that was told nothing goes on to record what it came to."""
    prompt = site.starts(ann, *SCRIPT)
    held, at, lost = taken(prompt), place(prompt), [gone()]

    def passes(point: str, _about: object) -> None:
        if point == "after_commit" and lost:
            raise lost.pop()

    site.monkeypatch.setattr(journals, "crashpoint", passes)

    async def records() -> None:
        recorder.stage(said("One."))
        with pytest.raises(Unrecorded):
            await recorder.flush()
        recorder.stage(said("Two."))
        await recorder.flush()

    journal, steps = (
        PromptJournal(at, held.fence, GroupCommit(in_this_thread), lambda paths: []),
        read_steps(at.conversation, at.prompt),
    )
    recorder = Recorder(journal, PlainServices(), steps, at.seq, {})
    async_to_sync(records)()
    texts = Output.objects.filter(prompt=prompt, type="text").order_by("position")
    assert [row.content["text"] for row in texts] == ["One.", "Two."]


def test_a_turn_that_the_database_refuses_is_struck(ann: User, site: Site) -> None:
    """Whatever is wrong with it, it would be again, for ever: its lease lapses, as that of a lost worker does."""
    prompt = site.starts(ann, *SCRIPT)
    site.monkeypatch.setattr(runners, "load", lambda _prompt, _kept: _raise(DataError("invalid byte sequence")))
    run(taken(prompt))
    assert Prompt.objects.get().lease_until > 0


def test_a_file_that_the_database_refuses_does_not_undo_the_call(ann: User, site: Site) -> None:
    """Its name is too long, say: that will not change, so the model reads it, and that the tool ran."""
    refuse(site, DataError("value too long for type character varying(255)"))
    prompt = site.runs(ann, *SCRIPT)
    result = prompt.steps.get(path="1/0", type="action_result").content
    assert (prompt.state, result["code"]) == ("completed", "not_kept")
    why = "a.txt was not stored: DataError: value too long for type character varying(255)"
    assert result["message"] == f"It ran, but its result could not be saved. {why}"
    assert site.world.done == [("report.write", "q")]
