"""Answers to the questions of policies: what is recorded, what is refused, and what the policy is told."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from pydantic import BaseModel, create_model

from agents.engine import Action, Context
from conversations.approvals import answers
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.expiry import expire_due
from conversations.models import GateState, Output, Prompt, State
from conversations.prompts.start import cancel_prompt
from conversations.verification.stored import verify
from tests.conversations.questions import TRIP, Trip, asked, outcome, plays, waiting
from tests.conversations.recorded import Site, meddle, pending
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


def say(gate: Output, by: User, said: Any, **more: Any) -> Output:
    given = {"digest": gate.digest, "via": "page", "answer": said} | more
    return decide(gate.pk, by, "answer", **given)


def sound(prompt: Prompt) -> bool:
    return [str(problem) for problem in verify(prompt.conversation_id).problems] == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (("Which one?",), "The \u201csecond\u201d.\n"),
        (("Which one?", ["a", "b"]), "b"),
        ((Trip,), TRIP),
        ((Trip,), TRIP | {"stops": ["Faro"], "day": "2026-12-24", "note": "Soon"}),
    ],
)
def test_an_answer_is_what_the_policy_goes_on_with(ann: User, site: Site, question: Any, said: Any) -> None:
    first, *choices = question
    prompt, gate = asked(site, ann, first, **({"choices": choices[0]} if choices else {}))
    assert (gate.ask, gate.reason) == ("question", "Where should it go?" if first is Trip else "Which one?")
    assert prompt.state == State.WAITING
    after = say(gate, ann, said)
    assert (after.gate, after.via, after.decided_by) == (GateState.ANSWERED, "page", f"user:{ann.pk}")
    step = prompt.steps.get(path=gate.gate_path, type="action_result")
    assert step.content == {"decision": "answer", "answer": said, "digest": gate.digest, "via": "page"}
    came = outcome(site, prompt)
    assert came == (Trip(**said).model_dump(mode="json") if first is Trip else said)
    assert (prompt.state, prompt.stop_reason) == (State.COMPLETED, "done")
    assert sound(prompt)


WRONG: list[tuple[Any, Any, dict[str, str]]] = [
    ("Which?", None, {"": "text"}),
    ("Which?", " \n", {"": "text"}),
    ("Which?", 5, {"": "text"}),
    ("Which?", {"a": 1}, {"": "text"}),
    ("Which?", "x" * 20_001, {"": "at most 20,000"}),
    (["a", "b"], "c", {"": "Choose one of"}),
    (["a", "b"], "", {"": "Choose one of"}),
    (["a", "b"], 0, {"": "Choose one of"}),
    (Trip, "Lisbon", {"": "Give an object"}),
    (Trip, None, {"": "Give an object"}),
    (Trip, {}, {"city": "Enter a value", "nights": "Enter a value", "seat": "Enter a value"}),
    (Trip, TRIP | {"nights": 0}, {"nights": "1 or more"}),
    (Trip, TRIP | {"nights": "3"}, {"nights": "Enter a whole number"}),
    (Trip, TRIP | {"seat": "roof", "stops": ["a", 2]}, {"seat": "Choose ", "stops.1": "Enter a text"}),
    (Trip, TRIP | {"city": "x" * 21, "more": 1}, {"city": "at most 20 characters", "more": "Not known"}),
]


@pytest.mark.parametrize(("question", "said", "wrong"), WRONG)
def test_what_is_no_answer_changes_nothing(
    ann: User, site: Site, question: Any, said: Any, wrong: dict[str, str]
) -> None:
    """It is judged by what was recorded of the question, and each problem is said of its field."""
    choices = {"choices": question} if isinstance(question, list) else {}
    prompt, gate = asked(site, ann, "Which?" if choices else question, **choices)
    steps = prompt.steps.count()
    with pytest.raises(DecisionRefused) as caught:
        say(gate, ann, said)
    assert caught.value.code == "invalid_answer"
    for place, why in wrong.items():
        assert why in " ".join(caught.value.details[place])
    assert all(why.endswith(".") for whys in caught.value.details.values() for why in whys)
    assert (prompt.steps.count(), Output.objects.get(pk=gate.pk).gate) == (steps, GateState.PENDING)


@pytest.mark.parametrize("said", [float("nan"), {1: 2}, object(), [[]] and "deep"])
def test_what_is_no_json_is_no_answer(ann: User, site: Site, said: Any) -> None:
    for _ in range(300 if said == "deep" else 0):
        said = [said]
    _, gate = asked(site, ann, Trip)
    with pytest.raises(DecisionRefused) as caught:
        say(gate, ann, said)
    assert caught.value.code == "invalid_answer"


def test_an_answer_that_is_too_long_is_not_judged(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was, under the conversation's lock, which took as long as whoever sent it liked. Letters count as one."""
    _, gate = asked(site, ann, Trip)
    judged: list[Any] = []

    def judge(_asked: object, given: object) -> dict[str, list[str]]:
        judged.append(given)
        return {}

    monkeypatch.setattr(answers, "answer_problems", judge)
    with pytest.raises(DecisionRefused, match="at most 20,000 characters") as caught:
        say(gate, ann, TRIP | {"stops": ["a"] * 5_000})
    assert (caught.value.code, list(caught.value.details), judged) == ("invalid_answer", [""], [])
    say(gate, ann, said := TRIP | {"note": "\u00fc" * 19_000})
    assert judged == [said]


def test_an_answer_is_recorded_as_valid_text(ann: User, site: Site) -> None:
    """Halves of characters cannot be sent to anybody."""
    prompt, gate = asked(site, ann, Trip)
    say(gate, ann, TRIP | {"note": "a\ud800b\x00", "stops": ["\udfff"]})
    assert outcome(site, prompt) | {"day": None} == TRIP | {"note": "a\ufffdb\ufffd", "stops": ["\ufffd"], "day": None}
    assert sound(prompt)


def test_a_question_is_answered_and_nothing_else(ann: User, site: Site) -> None:
    _, gate = asked(site, ann, "Which?")
    for word in ("approve", "reject", "it_ran"):
        with pytest.raises(DecisionRefused, match="Possible decisions: answer") as caught:
            decide(gate.pk, ann, word, digest=gate.digest, via="page")
        assert caught.value.code == "unknown_decision"
    with pytest.raises(Conflict, match="not what you were shown"):
        say(gate, ann, "a", digest="0" * 64)


def test_the_first_answer_wins_and_the_same_again_is_the_same(ann: User, kim: User, site: Site) -> None:
    prompt, gate = asked(site, ann, Trip)
    first = say(gate, ann, TRIP)
    assert say(gate, ann, dict(reversed(TRIP.items()))).decided_at == first.decided_at
    for other, said in ((ann, TRIP | {"nights": 4}), (kim, TRIP)):
        with pytest.raises(Conflict) as caught:
            say(gate, other, said)
        entry: Any = caught.value.output.entry()
        assert (caught.value.code, caught.value.output.decided_by) == ("answered", f"user:{ann.pk}")
        assert entry.result.output["answer"] == TRIP
    assert prompt.steps.filter(type="resume").count() == 1


def test_who_may_decide_may_answer(ann: User, bob: User, kim: User, site: Site) -> None:
    prompt, gate = asked(site, ann, "Which?")
    ann.groups.clear()
    for nobody in (bob, ann):
        with pytest.raises(DecisionRefused) as caught:
            say(gate, nobody, "a")
        assert caught.value.code == "forbidden"
    say(gate, kim, "a")
    assert outcome(site, prompt) == "a"


def test_somebody_else_answers_where_that_is_asked_for(ann: User, kim: User, site: Site) -> None:
    """`who="another"`: neither whoever asked for the turn, nor as a superuser."""
    User.objects.filter(pk=ann.pk).update(is_superuser=True)
    prompt, gate = asked(site, ann, "May it be sent?", choices=["yes", "no"], who="another")
    with pytest.raises(DecisionRefused, match="Someone else must answer") as caught:
        say(gate, ann, "no")
    assert caught.value.code == "four_eyes"
    say(gate, kim, "no")
    assert outcome(site, prompt) == "no"
    assert sound(prompt)


def test_nobody_answers_in_time(ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, Trip, hours=1)
    meddle("UPDATE conversations_output SET expires_at = '2020-01-01 00:00:00+00:00'")
    with pytest.raises(Conflict, match="nobody decided it in time"):
        say(gate, ann, TRIP)
    assert Output.objects.get(pk=gate.pk).gate == GateState.EXPIRED
    assert outcome(site, prompt) == {"error": "expired"}
    assert sound(prompt)


def test_the_sweep_expires_questions_too(ann: User, site: Site) -> None:
    prompt, _ = asked(site, ann, "Which?", hours=1)
    meddle("UPDATE conversations_output SET expires_at = '2020-01-01 00:00:00+00:00'")
    assert expire_due() == 1
    assert outcome(site, prompt) == {"error": "expired"}


def test_a_stopped_turn_takes_no_answer(ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, "Which?")
    cancel_prompt(prompt.pk, ann)
    with pytest.raises(Conflict) as caught:
        say(gate, ann, "a")
    assert caught.value.code == "cancelled"
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == State.CANCELLED
    assert sound(prompt)


def test_what_todays_form_refuses_is_asked_again(ann: User, site: Site) -> None:
    """The draft and its problems are asked with it. An answer to the card before does not answer this one."""
    prompt, gate = asked(site, ann, Trip)
    say(gate, ann, TRIP | {"city": "Nowhere"})
    site.works()
    (again,) = pending(prompt)
    assert (again.pk, again.gate_path) == (gate.pk, "1/card1")
    entry: Any = again.entry()
    assert entry.input["draft"] == TRIP | {"city": "Nowhere"}
    assert "no such city" in entry.input["problems"]["city"][0]
    assert entry.result.type == "pending"
    with pytest.raises(Conflict, match="not what you were shown"):
        say(gate, ann, TRIP | {"city": "Nowhere"})
    say(again, ann, TRIP)
    assert outcome(site, prompt)["city"] == "Lisbon"
    entry = Output.objects.get(pk=gate.pk).entry()
    assert (entry.result.type, entry.result.output["answer"]) == ("success", TRIP)
    assert sound(prompt)


def test_a_form_that_changed_while_it_was_asked(ann: User, site: Site) -> None:
    """The answer is checked by what was shown; today's form then asks, with its own schema, for what it needs too."""

    def asking(form: type[BaseModel]) -> Any:
        async def program(ctx: Context) -> Any:
            return (await ctx.ask(form)).model_dump()

        return program

    old, new = create_model("Old", city=(str, ...)), create_model("New", city=(str, ...), nights=(int, ...))
    prompt, gate = waiting(site, ann, asking(old))
    plays(site, asking(new))
    say(gate, ann, {"city": "Lisbon"})
    site.works()
    (again,) = pending(prompt)
    entry: Any = again.entry()
    assert entry.input["draft"] == {"city": "Lisbon"}
    assert list(entry.input["problems"]) == ["nights"]


def test_two_questions_side_by_side_go_on_with_the_last_answer(ann: User, site: Site) -> None:
    async def program(ctx: Context) -> Any:
        return await ctx.gather(ctx.ask("One?", key="one"), ctx.approve("Two?", "Its details.", key="two"))

    prompt, _ = waiting(site, ann, program)
    one, two = pending(prompt)
    assert (two.ask, two.reason) == ("approve", "Two?")
    say(one, ann, "1")
    prompt.refresh_from_db()
    assert prompt.state == State.WAITING
    decide(two.pk, ann, "reject", digest=two.digest, via="page", reason="No.")
    assert outcome(site, prompt) == ["1", False]
    assert sound(prompt)


def test_a_question_of_the_long_way_needs_no_digest(ann: User, site: Site) -> None:
    """Nor does it expire."""

    async def program(ctx: Context) -> Any:
        return (await ctx.call(Action("human", {"question": "Go on?"})))[-1].payload["answer"]

    prompt, gate = waiting(site, ann, program)
    assert (gate.ask, gate.reason, gate.digest, gate.expires_at) == ("question", "Go on?", "", None)
    say(gate, ann, "Yes.")
    assert outcome(site, prompt) == "Yes."
    assert sound(prompt)


def test_a_person_without_the_right_to_see_it_is_no_other(site: Site, ann: User) -> None:
    """Somebody deactivated decides nothing, however many rights they had."""
    chief = person("chief", is_superuser=True)
    _, gate = asked(site, ann, "Which?")
    User.objects.filter(pk=chief.pk).update(is_active=False)
    with pytest.raises(DecisionRefused) as caught:
        say(gate, chief, "a")
    assert caught.value.code == "forbidden"
