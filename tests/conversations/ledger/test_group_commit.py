"""Group commit: the records of several turns in one transaction come to what each alone would come to (I3, I8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agents.engine.errors import Behind, Fenced
from conversations.database.busy import is_locked
from conversations.database.sql import placeholders
from conversations.ledger import group_commit
from conversations.ledger.claims import Claim
from conversations.ledger.group_commit import GroupCommit, PromptJournal
from conversations.ledger.journal import append, append_all
from conversations.ledger.reading import read_steps
from conversations.ledger.rows import STEP_COLUMNS
from conversations.models import Conversation, Prompt, Quota
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import at_once, in_this_thread, meddle, place, record, said, taken

T = TypeVar("T")
pytestmark = pytest.mark.django_db


@dataclass
class Turn:
    """A turn that a worker has claimed, and is about to record something in."""

    prompt: Prompt
    claim: Claim
    journal: PromptJournal

    @property
    def texts(self) -> list[str]:
        """The texts in its ledger."""
        steps = read_steps(self.prompt.conversation_id, self.prompt.pk)
        return [step.payload["text"] for step in steps if step.type == "text"]


def turns_of(ann: User, count: int, commit: GroupCommit) -> list[Turn]:
    """Claimed turns, each in a conversation of its own."""
    found = []
    for _ in range(count):
        prompt = start_prompt(start_conversation(ann), ann, "Go.")
        claim = taken(prompt)
        found.append(Turn(prompt, claim, PromptJournal(place(prompt), claim.fence, commit, lambda paths: [])))
    return found


def together(turns: Sequence[Turn], text: str) -> list[Any]:
    """Each turn records this text, all at once. Returns their errors, or None."""

    async def run() -> list[Any]:
        asked = [turn.journal.record(said_now) for turn, said_now in zip(turns, records, strict=True)]
        return await asyncio.gather(*asked, return_exceptions=True)

    records = [record(turn.prompt, turn.journal.place, said(text)) for turn in turns]
    return async_to_sync(run)()


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each transaction had that was tried."""
    sizes: list[int] = []

    def noted(entries: Sequence[Any], **options: Any) -> Any:
        sizes.append(len(entries))
        return append_all(entries, **options)

    monkeypatch.setattr(group_commit, "append_all", noted)
    return sizes


def test_what_waits_is_committed_together(ann: User, groups: list[int]) -> None:
    turns = turns_of(ann, 4, GroupCommit(in_this_thread))
    assert together(turns, "One.") == together(turns, "Two.") == [None] * 4
    assert ([turn.texts for turn in turns], groups) == ([["One.", "Two."]] * 4, [4, 4])
    assert all(verify(turn.prompt.conversation_id).problems == [] for turn in turns)


def test_a_transaction_has_a_limit(ann: User, groups: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "TOGETHER_MOST", 3)
    assert together(turns_of(ann, 8, GroupCommit(in_this_thread)), "One.") == [None] * 8
    assert groups == [3, 3, 2]


def test_two_records_of_one_conversation_are_in_two_transactions(ann: User, groups: list[int]) -> None:
    """The second would be told of steps that are not committed: here it is behind, and goes on from what is."""
    (turn,) = turns_of(ann, 1, GroupCommit(in_this_thread))
    journal = PromptJournal(place(turn.prompt), turn.claim.fence, turn.journal.commit, lambda paths: [])
    stale = Turn(turn.prompt, turn.claim, journal)
    first, second = together([turn, stale], "Hello.")
    assert (first, type(second), groups) == (None, Behind, [1, 1])
    assert [step.payload["text"] for step in second.steps] == turn.texts == ["Hello."]


FAULTS = {
    "none": type(None),
    "behind": Behind,
    "lapsed": Fenced,
    "unready": LookupError,
    "refused": IntegrityError,
}
"""What may be wrong with an entry, and the error that its turn then gets."""


def unready() -> None:
    raise LookupError


@pytest.mark.django_db(transaction=True)
@examples(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults=st.lists(st.sampled_from(list(FAULTS)), min_size=1, max_size=5))
def test_each_comes_to_what_it_would_alone(ann: User, faults: list[str]) -> None:
    """Whatever is wrong with some: these get their own error and leave nothing; the others are written."""
    Quota.objects.get_or_create(user=ann, running_prompts=0)
    turns = turns_of(ann, len(faults), GroupCommit(in_this_thread))
    for turn, fault in zip(turns, faults, strict=True):
        if fault == "behind":
            append(at := place(turn.prompt), record(turn.prompt, at, said("Meanwhile.")))
        elif fault == "lapsed":
            meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [turn.prompt.pk])
        elif fault == "unready":
            turn.journal.before = unready
        elif fault == "refused":  # by the database: there is a step of that number
            at = place(turn.prompt)
            row = [at.conversation, at.seq + 1, at.prompt, "", "x", "note", None, "{}", "2026-01-01 00:00:00", ""]
            meddle(f"INSERT INTO conversations_step ({STEP_COLUMNS}) VALUES ({placeholders(len(row))})", row)
    found = together(turns, "Hello.")
    assert [type(each) for each in found] == [FAULTS[fault] for fault in faults]
    for turn, fault in zip(turns, faults, strict=True):
        assert turn.texts == {"none": ["Hello."], "behind": ["Meanwhile."]}.get(fault, [])
        assert turn.journal.place == place(turn.prompt)
        assert fault == "refused" or verify(turn.prompt.conversation_id).problems == []


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_away_for_all(ann: User, groups: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it once more for each of the others."""
    turns = turns_of(ann, 3, GroupCommit(in_this_thread))
    gone = OperationalError("the connection is closed")
    gone.__cause__ = psycopg.OperationalError("the connection is closed")

    def crashes(point: str, _about: object) -> None:
        if point == "before_commit":
            raise gone

    monkeypatch.setattr(group_commit, "crashpoint", crashes)
    assert together(turns, "Hello.") == [gone] * 3
    assert ([turn.texts for turn in turns], groups) == ([[]] * 3, [3])


def test_whoever_waits_is_told_that_the_thread_is_gone(ann: User) -> None:
    async def ended(function: Callable[..., T], *args: Any) -> T:
        raise RuntimeError("cannot schedule new futures after shutdown")

    assert [type(each) for each in together(turns_of(ann, 2, GroupCommit(ended)), "Hello.")] == [RuntimeError] * 2


def test_what_fails_in_one_group_is_no_concern_of_the_next(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "TOGETHER_MOST", 1)
    first, second = turns = turns_of(ann, 2, GroupCommit(in_this_thread))
    first.journal.after = lambda record, place: unready()
    assert [type(each) for each in together(turns, "Hello.")] == [LookupError, type(None)]
    assert first.texts == second.texts == ["Hello."]


def test_one_who_stops_waiting_is_left_out(ann: User) -> None:
    """The others are not: not even if it was the first, and asked for all."""
    first, second = turns = turns_of(ann, 2, GroupCommit(in_this_thread))

    async def run() -> None:
        asked = [asyncio.create_task(turn.journal.record(told)) for turn, told in zip(turns, records, strict=True)]
        await asyncio.sleep(0)  # both wait, and the thread has not begun
        asked[0].cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    records = [record(turn.prompt, turn.journal.place, said("Hello.")) for turn in turns]
    async_to_sync(run)()
    assert (first.texts, second.texts) == ([], ["Hello."])


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_conversation_that_somebody_holds_keeps_no_other_waiting(ann: User) -> None:
    """It is tried again by itself, later."""
    turns = turns_of(ann, 3, GroupCommit(in_this_thread))

    def holds() -> list[Any]:
        with transaction.atomic():
            Conversation.objects.select_for_update().get(pk=turns[1].claim.conversation)
            (found,) = at_once(lambda: together(turns, "Hello."))
            assert isinstance(found, list), found
            return found

    first, held, last = holds()
    assert (first, is_locked(held), last) == (None, True, None)
    assert [turn.texts for turn in turns] == [["Hello."], [], ["Hello."]]
