"""Deciding a gate: one approval, one decision, one execution."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist

from agents.engine.decisions import DECISIONS, STATES, Decision
from agents.engine.ledger import Step
from agents.engine.outputs.kinds import ToolOutput
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.ledger.journal import append
from conversations.models import GateState, Output, Prompt, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import LEASE, MIXED, ONE_GATE, TWO_GATES, Site, meddle, pending, place, record, taken
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


def approve(gate: Output, by: User, decision: str = "approve", **more: Any) -> Output:
    return decide(gate.pk, by, decision, **{"digest": gate.digest, "via": "page"} | more)


def decisions(prompt: Prompt) -> list[Row]:
    return list(Row.objects.filter(prompt=prompt, type="action_result", path__endswith="/human").order_by("seq"))


def resumes(prompt: Prompt) -> int:
    return Row.objects.filter(prompt=prompt, type="resume").count()


def test_an_approval_is_a_step_a_row_and_a_turn_that_goes_on(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    after = approve(gate, ann, via="admin", reason=" Go ahead. ")
    (step,) = decisions(prompt)
    assert (step.actor, step.path, step.content) == (
        f"user:{ann.pk}",
        "1/0/human",
        {"decision": "approve", "digest": gate.digest, "reason": "Go ahead.", "via": "admin"},
    )
    assert (after.gate, after.result, after.decided_by, after.via, after.note) == (
        "approved", "deferred", f"user:{ann.pk}", "admin", "Go ahead.",
    )  # fmt: skip
    assert after.decided_at == step.time
    prompt.refresh_from_db()
    assert (prompt.state, resumes(prompt)) == (State.RUNNING, 1)
    site.works()
    assert site.world.times == {("shell.run", "a"): 1}
    assert verify(prompt.conversation_id).problems == []


def test_a_rejection_runs_nothing_and_its_reason_is_the_calls_result(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    after = approve(pending(prompt)[0], ann, "reject", reason="Not today.")
    assert (after.gate, after.note) == ("rejected", "Not today.")
    site.works()
    entry = Output.objects.get(prompt=prompt, path="1/0").entry()
    assert isinstance(entry, ToolOutput)
    assert entry.result.model_dump()["error"] == {"code": "rejected", "message": "Not today."}
    prompt.refresh_from_db()
    assert (prompt.state, site.world.done) == (State.COMPLETED, [])
    assert verify(prompt.conversation_id).problems == []


def test_the_last_of_two_gates_lets_the_turn_go_on_once(ann: User, site: Site) -> None:
    """T-03: deciding one neither asks the other again nor goes on without it."""
    prompt = site.runs(ann, *TWO_GATES)
    first, second = pending(prompt)
    approve(second, ann)
    prompt.refresh_from_db()
    assert (prompt.state, resumes(prompt)) == (State.WAITING, 0)
    approve(first, ann, "reject")
    approve(first, ann, "reject")
    prompt.refresh_from_db()
    assert (prompt.state, resumes(prompt)) == (State.RUNNING, 1)
    site.works()
    assert site.world.done == [("shell.run", "b")]
    assert verify(prompt.conversation_id).problems == []


def test_what_was_not_shown_is_not_approved(ann: User, site: Site) -> None:
    """T-09, T-44: a stale tab, or a call that was changed after it was shown."""
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    for digest in ("", "0" * 64, gate.digest.upper()):
        with pytest.raises(Conflict) as caught:
            approve(gate, ann, digest=digest)
        assert (caught.value.code, caught.value.output.gate) == ("changed", "pending")
    assert (decisions(prompt), resumes(prompt)) == ([], 0)


def test_rows_that_were_changed_by_hand_run_nothing(ann: User, site: Site) -> None:
    """T-44: the row's digest was changed with what it shows; the call in the ledger is another."""
    prompt = site.runs(ann, *ONE_GATE)
    meddle("UPDATE conversations_output SET digest = %s WHERE gate = 'pending'", ["0" * 64])
    approve(pending(prompt)[0], ann)
    site.works()
    assert site.world.done == []
    assert Row.objects.get(path="1/0", type="action_result").content["code"] == "tool_changed"


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_person_without_the_right_decides_nothing(ann: User, bob: User, site: Site, decision: str) -> None:
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    with pytest.raises(DecisionRefused) as caught:
        approve(gate, bob, decision)
    assert caught.value.code == "forbidden"
    ann.groups.clear()
    with pytest.raises(DecisionRefused, match="permission"):
        approve(gate, User.objects.get(pk=ann.pk), decision)
    assert decisions(gate.prompt) == []


def test_others_decide_with_the_permission_for_others(ann: User, kim: User, site: Site) -> None:
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    assert approve(gate, kim).decided_by == f"user:{kim.pk}"


@pytest.mark.parametrize("superuser", [False, True])
def test_somebody_who_was_deactivated_decides_nothing(ann: User, site: Site, superuser: bool) -> None:
    """T-43: also where a session or a socket still knows them as active."""
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    assert ann.has_perm("conversations.decide_own_approval"), "known from before, and kept on the instance"
    User.objects.filter(pk=ann.pk).update(is_active=False, is_superuser=superuser)
    with pytest.raises(DecisionRefused, match="may not decide"):
        approve(gate, ann)
    assert decisions(gate.prompt) == []


def test_the_same_person_again_gets_the_first_result(ann: User, site: Site) -> None:
    """T-07, T-08, CP15: a double click; also after it ran, and after the turn ended."""
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    first = approve(gate, ann)
    again = approve(gate, ann)
    site.works()
    late = approve(gate, ann, digest="whatever")
    assert (again.decided_at, late.decided_at) == (first.decided_at, first.decided_at)
    assert late.result == "success"
    assert (len(decisions(prompt)), resumes(prompt)) == (1, 1)
    assert site.world.times == {("shell.run", "a"): 1}


def test_another_person_or_another_word_is_a_conflict(ann: User, kim: User, site: Site) -> None:
    """T-07: losers get 409, not silence."""
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    approve(gate, ann)
    for by, decision in ((kim, "approve"), (kim, "reject"), (ann, "reject")):
        with pytest.raises(Conflict, match="this is already approved") as caught:
            approve(gate, by, decision)
        assert (caught.value.code, caught.value.output.decided_by) == ("approved", f"user:{ann.pk}")
    assert len(decisions(gate.prompt)) == 1


def test_a_word_that_is_no_answer_decides_nothing(ann: User, site: Site) -> None:
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    for word in ("run_again", "cancelled", "expired", "", "APPROVE"):
        with pytest.raises(DecisionRefused, match="Possible decisions: approve, reject") as caught:
            approve(gate, ann, word)
        assert caught.value.code == "unknown_decision"


def test_nothing_is_decided_where_nobody_was_asked(ann: User, site: Site) -> None:
    """R24: what has no gate was never pending, whoever may decide it."""
    site.runs(ann, *ONE_GATE)
    text = Output.objects.get(type="text")
    with pytest.raises(Conflict, match="nobody was asked") as refused:
        decide(text.pk, ann, "approve", digest="", via="api")
    assert (refused.value.code, refused.value.output) == ("not_pending", text)
    for other in (person("sam"), person("dora", "decide_approval"), person("chief", is_superuser=True)):
        with pytest.raises(Output.DoesNotExist):
            decide(text.pk, other, "approve", digest="", via="api")
    with pytest.raises(ObjectDoesNotExist):
        decide(10**6, ann, "approve", digest="", via="api")


def interrupted(ann: User, site: Site) -> tuple[Prompt, Output]:
    """A command that began, and whose worker was lost."""
    prompt = site.runs(ann, *ONE_GATE)
    approve(pending(prompt)[0], ann)
    held, at = taken(prompt), place(prompt)
    start = {"attempt": 1, "digest": pending_digest(prompt), "fence": held.fence}
    root = Step("worker:test", "action_start", {"attempt": 2, "fence": held.fence})
    append(at, record(prompt, at, root, Step("worker:test", "action_start", start, "1/0")), fence=held.fence)
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - %s", [LEASE + 1])
    site.works()
    (card,) = pending(prompt)
    assert (card.ask, card.gate_path) == ("interrupted", "1/0/card1")
    return prompt, card


def pending_digest(prompt: Prompt) -> str:
    return Output.objects.gates().get(prompt=prompt).digest


@pytest.mark.parametrize(
    ("decision", "gate", "said"),
    [
        ("it_ran", "answered", "The owner says it ran"),
        ("it_did_not", "answered", "The owner says it did not run"),
        ("run_again", "approved", ""),
    ],
)
def test_the_card_of_an_interrupted_call(ann: User, site: Site, decision: str, gate: str, said: str) -> None:
    """Nothing runs twice by itself: the owner says what became of it, or approves it anew."""
    prompt, card = interrupted(ann, site)
    with pytest.raises(DecisionRefused, match="it_ran, it_did_not, run_again"):
        approve(card, ann, "approve")
    after = approve(card, ann, decision)
    assert after.gate == gate
    site.works()
    assert site.world.done == ([] if said else [("shell.run", "a")])
    result = Row.objects.get(prompt=prompt, path="1/0", type="action_result").content
    assert said in result.get("message", "")
    assert ("output" in result) is not bool(said)
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert verify(prompt.conversation_id).problems == []


def test_a_mixed_batch_is_clean_to_its_end(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *MIXED)
    first, second = pending(prompt)
    approve(first, ann, "reject", reason="Keep a.")
    approve(second, ann)
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert [name for name, _ in site.world.done] == ["fx.read", "report.write", "shell.run", "fx.read"]
    assert verify(prompt.conversation_id).problems == []


def test_a_turn_that_was_stopped_is_decided_no_more(ann: User, site: Site) -> None:
    """A worker still ends what runs; its gates are open until then, and nobody can approve them."""
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    meddle("UPDATE conversations_prompt SET state = 'running', lease_until = 1e12")
    cancel_prompt(prompt.pk, ann)
    assert pending(prompt) == [gate]
    with pytest.raises(Conflict, match="was stopped"):
        approve(gate, ann)


def test_the_database_knows_every_state_of_the_table() -> None:
    """But one: after an edit under four eyes the call is always asked about again, in the same record."""
    passing = DECISIONS[Decision.EDITED].state
    assert GateState.values == ["pending", *(state for state in STATES if state != passing)]
