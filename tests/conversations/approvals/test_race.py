"""Decisions at the same moment: one wins, and the call runs once or never."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from conversations.approvals.decisions import Conflict, decide
from conversations.models import Output, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt
from conversations.verification.stored import verify
from tests.conversations.questions import asked, outcome
from tests.conversations.recorded import ONE_GATE, TWO_GATES, Site, at_once, pending

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_twenty_decisions_by_twenty_people_one_wins(ann: User, site: Site) -> None:
    """T-07, T-08, I5: approve and reject mixed, one click each; the losers hear what was decided."""
    people = [ann, *User.objects.bulk_create(User(username=f"p{n}", is_superuser=True) for n in range(19))]
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)

    def deciding(n: int) -> Output:
        word = "approve" if n % 2 else "reject"
        return decide(gate.pk, people[n], word, digest=gate.digest, via="page")

    came_to = at_once(*[lambda n=n: deciding(n) for n in range(20)])
    won = [n for n, one in enumerate(came_to) if isinstance(one, Output)]
    lost = [one for one in came_to if isinstance(one, Conflict)]
    assert (len(won), len(lost)) == (1, 19), came_to
    word = "approve" if won[0] % 2 else "reject"
    (step,) = Row.objects.filter(path="1/0/human", type="action_result")
    assert (step.actor, step.content["decision"]) == (f"user:{people[won[0]].pk}", word)
    assert {conflict.output.decided_by for conflict in lost} == {step.actor}
    assert Row.objects.filter(type="resume").count() == 1
    site.works()
    assert site.world.times == ({("shell.run", "a"): 1} if word == "approve" else {})
    assert verify(prompt.conversation_id).problems == []


def test_twenty_clicks_of_one_person_are_one_decision(ann: User, site: Site) -> None:
    """T-07: the same person, the same word: all of them get the first result."""
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    came_to = at_once(*[lambda: decide(gate.pk, ann, "approve", digest=gate.digest, via="page").decided_at] * 20)
    assert len(set(came_to)) == 1, came_to
    assert Row.objects.filter(path="1/0/human", type="action_result").count() == 1


def test_two_gates_decided_at_once_go_on_once(ann: User, site: Site) -> None:
    """The one that comes second sees the other's decision, whichever it is."""
    prompt = site.runs(ann, *TWO_GATES)
    came_to = at_once(
        *[lambda g=g: decide(g.pk, ann, "approve", digest=g.digest, via="page").gate for g in pending(prompt)]
    )
    assert came_to == ["approved", "approved"]
    prompt.refresh_from_db()
    assert prompt.state == State.RUNNING
    assert Row.objects.filter(type="resume").count() == 1
    site.works()
    assert site.world.done == [("shell.run", "a"), ("shell.run", "b")]
    assert verify(prompt.conversation_id).problems == []


def test_a_decision_and_a_stop_at_once_leave_one_end(ann: User, site: Site) -> None:
    """T-34, CP28: nothing runs that the stop came before."""
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    at_once(
        lambda: decide(gate.pk, ann, "approve", digest=gate.digest, via="page"),
        lambda: cancel_prompt(prompt.pk, ann),
    )
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == State.CANCELLED
    assert site.world.done == []
    assert verify(prompt.conversation_id).problems == []


def test_of_twenty_answers_by_twenty_people_one_wins(ann: User, site: Site) -> None:
    """The losers are told what was answered, and by whom; the policy goes on once, with that answer."""
    people = [ann, *User.objects.bulk_create(User(username=f"p{n}", is_superuser=True) for n in range(19))]
    prompt, gate = asked(site, ann, "Which?")

    def answering(n: int) -> Output:
        return decide(gate.pk, people[n], "answer", digest=gate.digest, via="api", answer=f"Number {n}.")

    came_to = at_once(*[lambda n=n: answering(n) for n in range(20)])
    (won,) = [n for n, one in enumerate(came_to) if isinstance(one, Output)]
    lost: list[Any] = [one for one in came_to if isinstance(one, Conflict)]
    assert len(lost) == 19, came_to
    assert {conflict.output.decided_by for conflict in lost} == {f"user:{people[won].pk}"}
    assert {conflict.output.entry().result.output["answer"] for conflict in lost} == {f"Number {won}."}
    assert outcome(site, prompt) == f"Number {won}."
    assert Row.objects.filter(type="resume").count() == 1
    assert verify(prompt.conversation_id).problems == []


def test_twenty_clicks_on_an_answer_are_one(ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, "Which?", choices=["a", "b"])
    came_to = at_once(
        *[lambda: decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer="b").decided_at] * 20
    )
    assert len(set(came_to)) == 1, came_to
    assert outcome(site, prompt) == "b"


def test_an_answer_and_a_stop_at_once_leave_one_end(ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, "Which?")
    at_once(
        lambda: decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer="a"),
        lambda: cancel_prompt(prompt.pk, ann),
    )
    site.works()
    prompt.refresh_from_db()
    assert prompt.state in (State.CANCELLED, State.COMPLETED)
    assert verify(prompt.conversation_id).problems == []
