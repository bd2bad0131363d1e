"""A turn at whose step workers are lost ends, also if reading its ledger is what they are lost at."""

from __future__ import annotations

from typing import NoReturn

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.engine.outputs.kinds import Failure, ToolOutput
from agents.engine.outputs.timeline import Outputs
from conversations.approvals.decisions import decide
from conversations.ledger import given_up, locked
from conversations.ledger.claims import ALONE, STRIKES, claim, claimable
from conversations.ledger.given_up import give_up
from conversations.models import GateState, Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker import runner as runners
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.questions import TRIP, Trip, asked
from tests.conversations.recorded import LEASE, Site, in_this_thread, meddle, pending, taken
from tests.conversations.support import Story, says

pytestmark = pytest.mark.django_db


def struck(prompt: Prompt, strikes: int) -> None:
    """So many workers were lost with it, one of them just now."""
    meddle(
        "UPDATE conversations_prompt SET strikes = %s, fence = fence + 1, lease_until = 1 WHERE id = %s",
        [strikes - 1, prompt.pk],
    )


def run(prompt: Prompt) -> Prompt:
    held = taken(prompt)
    async_to_sync(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True))()
    prompt.refresh_from_db()
    return prompt


@pytest.fixture
def poison(ann: User, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """A turn in the middle of its calls, which cannot be loaded, nor folded as a whole."""
    story = Story(ann)
    story.asks_model()
    done, asked, runs = story.call("files.read", path="a"), story.call("shell.run", command="a"), story.call("report")
    story.answers(says("Three things."), done, asked, runs, tokens=7)
    story.begins(done)
    story.comes_to(done, "read")
    story.gate(asked)
    story.begins(runs)

    def fails(*_args: object) -> NoReturn:
        raise RecursionError("too deep")

    def folds(outputs: Outputs, steps: object = ()) -> None:
        if steps:
            fails()
        whole(outputs, ())

    whole = Outputs.__init__
    monkeypatch.setattr(runners, "load", fails)
    for module in (locked, given_up):
        monkeypatch.setattr(f"{module.__name__}.Outputs.__init__", folds)
    return story.prompt


def problems(prompt: Prompt) -> list[str]:
    """What is wrong, but for the questions to the model, which a story begins under no claim."""
    found = [problem.what.partition(":")[0] for problem in verify(prompt.conversation_id).problems]
    return [what for what in found if "claim None" not in what]


def entry(prompt: Prompt, path: str) -> ToolOutput:
    found = Output.objects.get(prompt=prompt, path=path, type="tool").entry()
    assert isinstance(found, ToolOutput)
    return found


def test_a_turn_that_cannot_be_loaded_is_given_up(poison: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tried it went on with its other turns, and its lease lapsed, again and again. All that was open is
    closed, as the rules of a ledger have it, and people read why."""
    struck(poison, STRIKES - 1)
    assert run(poison).state == "running"
    struck(poison, STRIKES)
    assert (run(poison).state, poison.stop_reason, poison.lease_until) == ("failed", "crash_loop", 0)
    monkeypatch.undo()
    assert problems(poison) == []
    result = entry(poison, "1/2").result
    assert isinstance(result, Failure)
    assert result.error["code"] == "crash_loop"
    assert "had begun" in result.error["message"]
    said = Output.objects.filter(prompt=poison, type="text").order_by("position").last()
    assert said
    assert "6 workers in a row were lost" in said.content["text"]


def test_a_question_that_was_asked_again_is_closed(ann: User, site: Site) -> None:
    """Its entry stands at the question, not at the card that is open."""
    prompt, gate = asked(site, ann, Trip)
    decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer=TRIP | {"city": "Nowhere"})
    site.works()
    assert pending(prompt)[0].gate_path == "1/card1"
    meddle("UPDATE conversations_prompt SET state = 'running' WHERE id = %s", [prompt.pk])
    struck(prompt, STRIKES)
    give_up(taken(prompt))
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("failed", "crash_loop")
    assert Output.objects.get(pk=gate.pk).gate == GateState.CANCELLED
    assert problems(prompt) == []


def test_it_ends_without_its_outputs_if_they_are_what_cannot_be_read(
    poison: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the ledgers tells of them."""

    def fails(_output: Output) -> NoReturn:
        raise ValueError("no such kind")

    monkeypatch.setattr(Output, "entry", fails)
    struck(poison, STRIKES)
    assert run(poison).state == "running"
    struck(poison, STRIKES + 1)
    assert (run(poison).state, poison.stop_reason) == ("failed", "crash_loop")
    monkeypatch.undo()
    assert problems(poison) == ["the output differs from its steps"] * 2


def test_giving_up_takes_no_other_down_a_second_time(ann: User) -> None:
    """It is tried beside suspects once, as all it has to do is to record an end; if that fails, alone."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(3)]
    poison, suspect, other = prompts
    struck(suspect, ALONE)
    struck(other, ALONE)
    taken(suspect)
    struck(poison, STRIKES + 1)
    assert claimable(10, "worker:test") == []
    assert claim(poison.pk, "worker:test", LEASE) is None
    assert claimable(10, "worker:other") == [other.pk, poison.pk]
    assert claim(poison.pk, "worker:other", LEASE)
    assert claimable(10, "worker:other") == []
