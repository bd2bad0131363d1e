"""A record is one transaction: steps, outputs, the prompt's row and the slot, or none of them."""

from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agents.engine.errors import Behind, Fenced
from agents.engine.interfaces.journal import Record
from agents.engine.ledger import Step
from conversations.ledger.claims import release
from conversations.ledger.journal import append
from conversations.ledger.locked import locked_turn
from conversations.ledger.reading import read_steps
from conversations.models import Conversation, Output, Prompt, Snapshot, State
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import MIXED, ONE_GATE, Site, meddle, pending, place, record, said, taken
from tests.engine.support import says

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


def end(state: str = "completed") -> Step:
    return Step("runtime", "action_result", {"state": state, "stop_reason": "text"})


def test_it_writes_steps_outputs_and_snapshots(prompt: Prompt) -> None:
    at = place(prompt)
    new = record(prompt, at, said("Hello."), Step("worker:1", "action_start", {"attempt": 1, "fence": 1}))
    after = append(at, Record(new.steps, new.outputs, {"a" * 64: "{}"}))
    assert [(row.seq, row.type, row.attempt) for row in Row.objects.order_by("seq")] == [
        (1, "action_call", None),
        (2, "text", None),
        (3, "action_start", 1),
    ]
    assert [(o.position, o.type, o.content["text"]) for o in Output.objects.all()] == [(2, "text", "Hello.")]
    assert Snapshot.objects.get().text == "{}"
    conversation = Conversation.objects.get()
    assert (conversation.seq, conversation.head) == (after.seq, after.head) == (3, Row.objects.get(seq=3).digest)
    assert conversation.updated_at == datetime.fromisoformat(new.steps[-1].time)


def test_lists_are_sorted_by_what_people_see_begin_or_end_and_not_by_each_round(prompt: Prompt) -> None:
    held, at = taken(prompt), place(prompt)
    begun = Conversation.objects.get()
    at = append(at, record(prompt, at, said("One round.")), fence=held.fence)
    going_on = Conversation.objects.get()
    assert (going_on.updated_at, going_on.last_step_at) == (begun.updated_at, Row.objects.get(seq=at.seq).time)
    at = append(at, record(prompt, at, end()), fence=held.fence)
    ended = Conversation.objects.get()
    assert ended.updated_at == ended.last_step_at == Row.objects.get(seq=at.seq).time


def test_the_end_of_a_turn_frees_the_slot_and_gives_the_lease_back(prompt: Prompt) -> None:
    """CP27: the last text, the end, its state and the slot are one transaction."""
    held, at = taken(prompt), place(prompt)
    append(at, record(prompt, at, said(), end()), fence=held.fence)
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason, prompt.lease_until) == (State.COMPLETED, "text", 0)
    assert prompt.ended_at == Row.objects.latest("seq").time
    assert prompt.conversation.active_prompt is None


def test_what_is_refused_leaves_nothing(prompt: Prompt) -> None:
    held, at = taken(prompt), place(prompt)
    new = record(prompt, at, said(), end())
    with pytest.raises(Fenced), transaction.atomic():
        append(at, new, fence=held.fence + 1)
    assert (Row.objects.count(), Output.objects.count(), place(prompt)) == (1, 0, at)
    assert Conversation.objects.get().active_prompt == prompt


def test_a_writer_that_has_not_seen_the_last_step_is_told_what_it_missed(prompt: Prompt) -> None:
    """T-09: whoever is behind reads, and writes again."""
    stale, at = place(prompt), place(prompt)
    at = append(at, record(prompt, at, said("First."), said("Second.")))
    with pytest.raises(Behind) as caught, transaction.atomic():
        append(stale, record(prompt, stale, said("Late.")))
    assert [(step.id, step.payload["text"]) for step in caught.value.steps] == [(2, "First."), (3, "Second.")]
    assert caught.value.last_id == 3
    assert stale == at
    append(stale, record(prompt, stale, said("Late.")))
    assert [step.payload.get("text") for step in read_steps(prompt.conversation_id, prompt.pk)][1:] == [
        "First.",
        "Second.",
        "Late.",
    ]


def test_it_is_told_the_steps_of_its_own_turn_alone(ann: User, prompt: Prompt) -> None:
    """Another prompt of the conversation queues meanwhile: its call takes an id, and is no step of this turn."""
    stale = place(prompt)
    start_prompt(prompt.conversation, None, None)
    with pytest.raises(Behind) as caught, transaction.atomic():
        append(stale, record(prompt, stale, said()))
    assert (caught.value.steps, caught.value.last_id) == ([], 2)


def test_steps_follow_on_each_other(prompt: Prompt) -> None:
    at = place(prompt)
    new = record(prompt, at, said())
    gap = [Step(s.actor, s.type, s.payload, s.path, s.id + 1, s.time) for s in new.steps]
    with pytest.raises(ValueError, match="step 3 where 2 is next"):
        append(at, Record(tuple(gap)))


def test_a_worker_without_the_claim_writes_nothing(prompt: Prompt) -> None:
    """T-23, I8: the claim has passed to another worker."""
    first = taken(prompt)
    release(first)
    second, at = taken(prompt), place(prompt)
    with pytest.raises(Fenced), transaction.atomic():
        append(at, record(prompt, at, said()), fence=first.fence)
    append(at, record(prompt, at, said()), fence=second.fence)


def test_a_worker_whose_lease_ran_out_writes_nothing(prompt: Prompt) -> None:
    """T-23, I8: nobody has taken it over yet, and may at any moment."""
    held, at = taken(prompt), place(prompt)
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - 31")
    with pytest.raises(Fenced), transaction.atomic():
        append(at, record(prompt, at, said()), fence=held.fence)


def test_a_worker_of_an_erased_conversation_is_fenced(prompt: Prompt) -> None:
    at = place(prompt)
    at.conversation = 10**6
    with pytest.raises(Fenced, match="erased"), transaction.atomic():
        append(at, record(prompt, at, said()))


CALL = Step("runtime", "action_call", {"policy": "x", "payload": {}}, path="1")
START = Step("worker:1", "action_start", {"attempt": 1}, path="1")
RESULT = Step("runtime", "action_result", {"output": None}, path="1")


@pytest.mark.parametrize("twice", [CALL, START, RESULT], ids=lambda step: step.type)
def test_a_call_a_start_and_a_result_are_there_once(prompt: Prompt, twice: Step) -> None:
    """The three unique indexes, whatever a writer believes."""
    at = place(prompt)
    at = append(at, record(prompt, at, CALL, START, RESULT))
    with pytest.raises(IntegrityError), transaction.atomic():
        append(at, record(prompt, at, twice))
    other = Step(twice.actor, twice.type, twice.payload | {"attempt": 2}, path="2" if twice is not START else "1")
    append(at, record(prompt, at, other))


def test_another_prompt_has_paths_of_its_own(ann: User, site: Site) -> None:
    first = site.ended(ann, says("One."))
    second = site.runs(ann, says("Zero."), says("Two."), conversation=first.conversation)
    assert (second.number, second.state) == (2, State.COMPLETED)
    assert verify(first.conversation_id).problems == []


def test_what_people_append_needs_no_lease(prompt: Prompt) -> None:
    with locked_turn(prompt.pk) as turn:
        turn.append([said("From a person.")])
        turn.append([said("And again.")])
    assert [step.payload.get("text") for step in read_steps(prompt.conversation_id, prompt.pk)][1:] == [
        "From a person.",
        "And again.",
    ]
    assert verify(prompt.conversation_id).problems == []


def test_usage_rounds_and_state_are_the_fold_of_the_steps(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    assert (prompt.state, prompt.rounds, prompt.input_tokens) == (State.WAITING, 1, 10)
    assert (prompt.lease_until, prompt.conversation.active_prompt) == (0, prompt)
    prompt = site.ended(ann, *ONE_GATE)
    assert (prompt.state, prompt.stop_reason, prompt.rounds) == (State.COMPLETED, "text", 2)
    assert (prompt.input_tokens, prompt.output_tokens, prompt.cached_tokens) == (20, 10, 0)


def test_what_a_model_words_fits_every_column(ann: User, site: Site) -> None:
    """A name of 208 characters, NUL and a lone surrogate: whole in `data`, cut and made valid in the other columns."""
    prompt = site.runs(ann, *MIXED)
    row = Output.objects.get(prompt=prompt, path="1/5")
    assert row.tool == "no.such\ufffd" + "x" * 92
    assert row.content["tool"] == "no.such\x00" + "x" * 200
    assert row.content["input"] == {"text": "\x00\ud800", "number": 1e16}
    assert [gate.reason for gate in pending(prompt)] == ["Run: rm a", "Run: rm \ufffd b"]
    assert verify(prompt.conversation_id).problems == []
