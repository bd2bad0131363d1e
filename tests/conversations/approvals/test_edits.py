"""Approving a call with an edited input: it is checked, has its own digest, runs once, and both inputs are kept."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from pydantic import BaseModel, Field

from agents import discovery
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.many import TOGETHER_MOST, WantedDecision, decide_many
from conversations.display.gate import card
from conversations.models import GateState, Output, Prompt, State
from conversations.models import Step as Row
from conversations.verification.stored import verify
from tests.conversations.recorded import ONE_GATE, TWO_GATES, Site, pending
from tests.conversations.support import asking
from tests.engine.support import call, digest_of, says

pytestmark = pytest.mark.django_db


class Letter(BaseModel):
    """What `mail.send` takes."""

    to: list[str] = Field(min_length=1)
    copies: int = 1
    text: str = ""


SANDBOX = {"works": True}


def facts(call: ToolCall[Letter]) -> list[str]:
    letter = call.input
    reach = "Sandboxed." if SANDBOX["works"] else "Not sandboxed."
    return [reach, f"Goes to {len(letter.to)}.", *(["Many copies."] if letter.copies > 9 else [])]


@tool("mail.send", risk=Risk.EXFILTRATION, facts=facts, title="Send a letter")
def send(call: ToolCall[Letter]) -> str:
    """Send a letter."""
    sent.append(call.input.model_dump())
    return f"sent to {', '.join(call.input.to)}"


sent: list[dict[str, Any]] = []
ASKED = {"to": ["ann"], "text": "Hello."}
LETTER = (says("A letter.", call("mail.send", **ASKED)), says("Done."))
THREE = (says("Three.", *(call("mail.send", to=[name]) for name in "abc")), says("Done."))


@pytest.fixture(autouse=True)
def _nothing_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setitem(SANDBOX, "works", True)


@pytest.fixture
def post(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site that has the tool in its workers and in this process."""
    has(monkeypatch, send)
    tools = site.world.tools()
    monkeypatch.setattr(site.world, "tools", lambda: [*tools, send])
    return site


def has(monkeypatch: pytest.MonkeyPatch, *tools: Tool) -> None:
    """This process has these tools."""
    monkeypatch.setattr(discovery, "installed", lambda: discovery.Found(tools, ()))


def edit(gate: Output, by: User, input: object, **more: Any) -> Output:
    return decide(gate.pk, by, "approve", input=input, **{"digest": gate.digest, "via": "page"} | more)


def entry_of(prompt: Prompt, path: str = "1/0") -> ToolOutput:
    entry = Output.objects.get(prompt=prompt, path=path).entry()
    assert isinstance(entry, ToolOutput)
    return entry


def decided(prompt: Prompt) -> list[dict[str, Any]]:
    return [row.content for row in Row.objects.filter(prompt=prompt, type="action_result", path__endswith="/human")]


def test_an_edited_call_is_what_runs_and_both_are_kept(ann: User, post: Site) -> None:
    prompt = post.runs(ann, *LETTER)
    (gate,) = pending(prompt)
    changed = {"to": ["bob"], "copies": 2, "text": " Hello,\n  Bob \n"}
    after = edit(gate, ann, changed, reason="Bob, not Ann.")
    assert after.gate == GateState.APPROVED
    assert decided(prompt) == [
        {
            "decision": "approve",
            "digest": digest_of(send, changed),
            "input": changed,
            "facts": ["Sandboxed.", "Goes to 1."],
            "reason": "Bob, not Ann.",
            "via": "page",
        }
    ]
    post.works()
    assert sent == [changed]
    entry = entry_of(prompt)
    assert (entry.input, entry.proposed) == (changed, ASKED)
    start = Row.objects.get(prompt=prompt, path="1/0", type="action_start").content
    assert start["digest"] == digest_of(send, changed)
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert verify(prompt.conversation_id).problems == []
    row = Output.objects.get(path="1/0")
    shown = card(row, {row.decided_by: "you"})
    assert shown.verdict == "Edited and approved by you"
    assert shown.proposed
    assert sorted(field.text for field in shown.proposed.fields) == ["Hello.", "ann"]


def test_an_edit_that_changes_nothing_is_a_plain_approval(ann: User, post: Site) -> None:
    prompt = post.runs(ann, *LETTER)
    edit(pending(prompt)[0], ann, {"text": "Hello.", "to": ["ann"]})
    (said,) = decided(prompt)
    assert said == {"decision": "approve", "digest": digest_of(send, ASKED), "via": "page"}
    post.works()
    assert entry_of(prompt).proposed is None


@pytest.mark.parametrize("installed", [True, False], ids=["own tool", "recorded schema alone"])
@pytest.mark.parametrize(
    "wrong",
    [
        ({"to": [], "text": ""}, "to"),
        ({"to": ["bob", 5]}, "to.1"),
        ({"to": ["bob"], "copies": "2"}, "copies"),
        ({"to": ["bob"], "copies": True}, "copies"),
        ({"text": "Hello."}, ""),
        ({"to": ["bob"], "cc": ["eve"]}, ""),
        ([], "input"),
        ({"to": [float("nan")]}, "input"),
        ({1: "x"}, "input"),
    ],
)
def test_an_input_that_is_not_valid_decides_nothing(
    ann: User, post: Site, monkeypatch: pytest.MonkeyPatch, wrong: tuple[Any, str], installed: bool
) -> None:
    """Each is refused with what is wrong, by field, whether or not this process has the tool."""
    changed, at = wrong
    prompt = post.runs(ann, *LETTER)
    if not installed:
        has(monkeypatch)
    with pytest.raises(DecisionRefused) as caught:
        edit(pending(prompt)[0], ann, changed)
    assert caught.value.code == "invalid_input"
    assert not at or list(caught.value.details) == [at]
    assert all(why[:-1] and why.endswith(".") for whys in caught.value.details.values() for why in whys)
    assert decided(prompt) == []
    assert pending(prompt)


@pytest.mark.parametrize("process", ["without the tool", "with another of its name"])
def test_an_edit_holds_where_only_the_worker_has_the_tool(
    ann: User, post: Site, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    """A plugin offers tools round by round: the schema that the model saw is what an edit is checked against."""
    prompt = post.runs(ann, *LETTER)
    changed = tool("mail.send")(lambda_of_another())
    has(monkeypatch, *([changed] if process == "with another of its name" else []))
    edit(pending(prompt)[0], ann, {"to": ["bob"]})
    post.works()
    assert [letter["to"] for letter in sent] == [["bob"]]
    assert verify(prompt.conversation_id).problems == []


def lambda_of_another() -> Any:
    class Other(BaseModel):
        number: int

    def other(call: ToolCall[Other]) -> str:
        """Another."""
        return "other"

    other.__annotations__ = {"call": ToolCall[Other], "return": str}
    return other


def test_other_facts_have_to_be_seen_before_they_are_approved(ann: User, post: Site) -> None:
    """The digest binds what holds of a call: an edit by which something else holds is shown again first."""
    prompt = post.runs(ann, *LETTER)
    (gate,) = pending(prompt)
    many = {"to": ["ann", "bob", "eve"]}
    with pytest.raises(Conflict) as caught:
        edit(gate, ann, many)
    assert caught.value.code == "facts_changed"
    assert caught.value.details == {"facts": ["Sandboxed.", "Goes to 3."], "digest": digest_of(send, many)}
    assert decided(prompt) == []
    with pytest.raises(Conflict, match="not what you were shown"):
        edit(gate, ann, {"to": ["ann", "bob", "zoe"]}, digest=digest_of(send, many))
    edit(gate, ann, many, digest=caught.value.details["digest"])
    post.works()
    assert [len(letter["to"]) for letter in sent] == [3]
    approval = entry_of(prompt).approval
    assert approval
    assert approval.facts == ["Sandboxed.", "Goes to 3."], "what the person agreed to, not what was asked first"
    assert verify(prompt.conversation_id).problems == []


def test_a_fact_that_only_the_edit_brings_is_told(ann: User, post: Site) -> None:
    (gate,) = pending(post.runs(ann, *LETTER))
    with pytest.raises(Conflict) as caught:
        edit(gate, ann, ASKED | {"copies": 10})
    assert caught.value.details["facts"] == ["Sandboxed.", "Goes to 1.", "Many copies."]


def test_what_the_edit_does_not_change_stays_as_the_worker_said_it(
    ann: User, post: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web process may stand on a machine without a sandbox: the worker's word is what was shown, and what counts."""
    prompt = post.runs(ann, *LETTER)
    (gate,) = pending(prompt)
    SANDBOX["works"] = False
    with pytest.raises(Conflict) as caught:
        edit(gate, ann, {"to": ["ann", "bob"]})
    assert caught.value.details["facts"] == ["Sandboxed.", "Goes to 2."]
    edit(gate, ann, {"to": ["bob"]})
    SANDBOX["works"] = True
    post.works()
    assert [letter["to"] for letter in sent] == [["bob"]]


def test_what_was_edited_as_sandboxed_does_not_run_where_it_is_not(ann: User, post: Site) -> None:
    """T-44: the engine's own look at the call, right before it starts, is the last word."""
    prompt = post.runs(ann, *LETTER)
    edit(pending(prompt)[0], ann, {"to": ["bob"]})
    SANDBOX["works"] = False
    post.works()
    assert sent == []
    assert Row.objects.get(prompt=prompt, path="1/0", type="action_result").content["code"] == "changed_since"


def test_an_edit_of_a_stale_card_is_refused(ann: User, post: Site) -> None:
    """T-09."""
    (gate,) = pending(post.runs(ann, *LETTER))
    for digest in ("", "0" * 64):
        with pytest.raises(Conflict) as caught:
            edit(gate, ann, {"to": ["bob"]}, digest=digest)
        assert (caught.value.code, caught.value.output.gate) == ("changed", "pending")


def test_the_same_edit_again_gets_the_first_result_and_another_is_a_conflict(ann: User, post: Site) -> None:
    """T-07: a second approval that is silently dropped would make somebody believe that their edit ran."""
    prompt = post.runs(ann, *LETTER)
    (gate,) = pending(prompt)
    first = edit(gate, ann, {"to": ["bob"]})
    assert edit(gate, ann, {"to": ["bob"]}).decided_at == first.decided_at
    others: list[object] = [{"to": ["eve"]}, None, ASKED, []]
    for other in others:
        with pytest.raises(Conflict, match="already approved"):
            edit(gate, ann, other)
    assert len(decided(prompt)) == 1


def test_a_plain_approval_is_not_edited_afterwards(ann: User, post: Site) -> None:
    (gate,) = pending(post.runs(ann, *LETTER))
    edit(gate, ann, None)
    assert edit(gate, ann, ASKED).gate == GateState.APPROVED
    with pytest.raises(Conflict, match="already approved"):
        edit(gate, ann, {"to": ["bob"]})


@pytest.mark.parametrize("decision", ["reject", "run_again"])
def test_only_an_approval_takes_another_input(ann: User, post: Site, decision: str) -> None:
    prompt = post.runs(ann, *LETTER)
    (gate,) = pending(prompt)
    with pytest.raises(DecisionRefused) as caught:
        decide(gate.pk, ann, decision, digest=gate.digest, via="api", input={"to": ["bob"]})
    assert caught.value.code in ("not_editable", "unknown_decision")
    assert decided(prompt) == []


def test_a_call_whose_schema_is_recorded_nowhere_cannot_be_edited(ann: User) -> None:
    _, gate = asking(ann)
    with pytest.raises(DecisionRefused) as caught:
        edit(gate, ann, {"command": "ls -l"})
    assert caught.value.code == "not_editable"
    assert edit(gate, ann, {"command": "ls -la"}).gate == GateState.APPROVED


def test_after_an_edit_the_same_call_asks_anew(ann: User, post: Site) -> None:
    """T-06: an approval is of one call: the model asking again, for either version, is asked about again."""
    again = says("Again.", call("mail.send", **ASKED), call("mail.send", to=["bob"]))
    prompt = post.runs(ann, LETTER[0], again, says("Done."))
    edit(pending(prompt)[0], ann, {"to": ["bob"]})
    post.works()
    assert [gate.path for gate in pending(prompt)] == ["2/0", "2/1"]
    assert [letter["to"] for letter in sent] == [["bob"]]


@pytest.mark.parametrize("order", ["cab", "bca", "abc"])
def test_each_of_three_gets_its_own_answer_in_any_order(ann: User, post: Site, order: str) -> None:
    """T-02: answered in any order, each gets its own; they run in call order."""
    prompt = post.runs(ann, *THREE)
    gates = dict(zip("abc", pending(prompt), strict=True))
    for name in order:
        if name == "b":
            decide(gates[name].pk, ann, "reject", digest=gates[name].digest, via="page", reason="Not b.")
        else:
            edit(gates[name], ann, {"to": [name * 2]} if name == "c" else None)
    post.works()
    assert [letter["to"] for letter in sent] == [["a"], ["cc"]]
    rejected = entry_of(prompt, "1/1").result.model_dump()
    assert rejected["error"] == {"code": "rejected", "message": "Not b."}
    assert entry_of(prompt, "1/2").proposed == {"to": ["c"]}
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED


def test_many_are_decided_each_for_itself_in_order(ann: User, bob: User, post: Site) -> None:
    prompt = post.runs(ann, *THREE)
    first, second, third = pending(prompt)
    (other,) = pending(post.runs(bob, *ONE_GATE))
    verdicts = decide_many(
        [
            WantedDecision(third.pk, "approve", third.digest, input={"to": ["zoe"]}),
            WantedDecision(10**6, "approve", ""),
            WantedDecision(second.pk, "approve", "0" * 64),
            WantedDecision(other.pk, "approve", other.digest),
            WantedDecision(first.pk, "reject", first.digest, reason="No."),
            WantedDecision(first.pk, "approve", first.digest),
            WantedDecision(second.pk, "approve", second.digest, input={"to": []}),
        ],
        ann,
        "api",
    )
    assert [verdict.refused.code if verdict.refused else "" for verdict in verdicts] == [
        "", "not_found", "changed", "not_found", "", "rejected", "invalid_input",
    ]  # fmt: skip
    assert [verdict.output.gate for verdict in verdicts if verdict.output] == ["approved", "rejected"]
    assert {row["via"] for row in decided(prompt)} == {"api"}
    assert pending(prompt) == [second]


def test_no_more_than_can_be_read_are_decided_together(ann: User) -> None:
    with pytest.raises(ValueError, match="20"):
        decide_many([WantedDecision(1, "approve", "")] * (TOGETHER_MOST + 1), ann, "api")


def test_two_gates_one_edited(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *TWO_GATES)
    first, second = pending(prompt)
    edit(first, ann, {"command": "a\n\n  b \n"})
    edit(second, ann, None)
    site.works()
    assert site.world.done == [("shell.run", "a\n\n  b \n"), ("shell.run", "b")]
    assert verify(prompt.conversation_id).problems == []
