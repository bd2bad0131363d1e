"""The fold: what people see of a ledger, from any part of it, whatever stands in it."""

from typing import Any

import pytest

from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE, TURN_ENDED, CallIds, render, shorten, turn_messages
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Step, action_call, action_error, action_result, text
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.outputs.registry import load_output
from agents.engine.outputs.timeline import Outputs
from tests.engine.journals import numbered
from tests.engine.sound import problems


def folded(*steps: Step) -> Outputs:
    return Outputs(numbered(EMPTY, steps))


def at(path: str, step: Step) -> Step:
    return Step(step.actor, step.type, step.payload, path=path)


def human(path: str, **payload: object) -> Step:
    return at(path, Step("runtime", "action_call", {"policy": "human", "payload": {"ask": "approve", **payload}}))


CALL = at("1/0", action_call("model", "shell.run", {"command": "ls"}))


def states(*steps: Step) -> list[str]:
    """The state of the entry at 1/0 after each step."""
    return [entry.result.type for n in range(1, len(steps) + 1) if (entry := folded(*steps[:n]).entry("1/0"))]


def test_one_entry_keeps_its_place_while_its_result_changes() -> None:
    """running, pending, deferred, running, success at one position (S10, S11, R7)."""
    steps = [
        CALL,
        human("1/0/human", reason="Run: ls"),
        at("1/0/human", Step("user:7", "action_result", {"decision": "approve", "via": "page"})),
        at("1/0", Step("worker:1", "action_start")),
        at("1/0", action_result("tool:shell.run", "ok")),
    ]
    assert states(*steps) == ["running", "pending", "deferred", "running", "success"]
    outputs = folded(*steps)
    assert len(outputs.in_order()) == 1
    entry = outputs.entry("1/0")
    assert entry
    assert entry.approval
    assert (entry.position, entry.approval.state, entry.approval.decided_by) == (1, "approved", "user:7")


def test_reading_order_is_the_tree() -> None:
    """What a call emitted stands right after its entry, in the order of emission, whenever it came (S24)."""
    outputs = folded(
        at("1", text("model", "Two.")),
        CALL,
        at("1/1", action_call("model", "fx.read")),
        at("1/1", Step("tool:fx.read", "widget", {"widget": "w"})),
        at("1/1", action_result("tool:fx.read", 1)),
        at("1/0", Step("tool:shell.run", "file", {"file": 1, "name": "a"})),
        at("1/0", Step("tool:shell.run", "widget", {"widget": "w"})),
        at("", text("system", "Stopped.")),
    )
    assert [(o.type, o.path) for o in outputs.in_order()] == [
        ("text", "1"),
        ("tool", "1/0"),
        ("file", "1/0"),
        ("widget", "1/0"),
        ("tool", "1/1"),
        ("widget", "1/1"),
        ("text", ""),
    ]


def test_outputs_survive_json() -> None:
    """Stored as JSON, read back the same (S14)."""
    outputs = folded(CALL, human("1/0/human"), at("1/0", action_error("runtime", "rejected", "No."))).in_order()
    assert [load_output(output.model_dump(mode="json")) for output in outputs] == outputs


def test_steps_of_an_unknown_type_touch_nothing() -> None:
    """Old ledgers and new kinds: what nobody registered is skipped."""
    assert len(folded(Step("x", "hologram", {"a": 1}), at("1/0", Step("x", "hologram")), CALL).in_order()) == 1


@pytest.mark.parametrize("key", ["cards", "card", "cardinal", "humans", "human", "card1"])
def test_a_call_whose_key_looks_like_a_gate_is_none(key: str) -> None:
    """Only what asks a person changes the entry above it."""
    outputs = folded(
        CALL,
        at(f"1/0/{key}", Step("policy:x", "action_call", {"policy": "fx.read", "payload": {}, "tool": True})),
        at(f"1/0/{key}", action_result("tool:fx.read", 1)),
    )
    above, below = outputs.in_order()
    assert isinstance(above, ToolOutput)
    assert isinstance(below, ToolOutput)
    assert (above.result.type, below.result.type, below.parent) == ("running", "success", "1/0")


def test_policies_open_no_entry_and_their_questions_do() -> None:
    """A workflow's question to a person is an entry of its own, success with the decision."""
    asked = human("1", reason="Which?")
    outputs = folded(at("", action_call("user:1", "flow")), asked)
    (entry,) = outputs.in_order()
    assert isinstance(entry, ToolOutput)
    assert (entry.tool, entry.result.type) == ("human", "pending")
    (answered,) = folded(
        asked, at("1", Step("user:7", "action_result", {"decision": "answer", "answer": "b"}))
    ).in_order()
    assert isinstance(answered, ToolOutput)
    assert answered.approval
    assert (answered.result.type, answered.approval.state) == ("success", "answered")


def past(*steps: Step, input: str | None = "Hi.", continues: bool = False, needs_user: bool = False) -> list[object]:
    turn = PastTurn(3, input, folded(*steps).in_order(), continues=continues)
    messages = turn_messages(turn, CallIds(), Limits(), needs_user=needs_user)
    assert problems(messages) == []
    return list(messages)


def test_an_earlier_prompt_is_told_round_by_round() -> None:
    """Input, texts, calls paired with results; widgets dropped, files summarised with their result (S13, R21)."""
    messages = past(
        at("1", text("model", "Look.")),
        CALL,
        at("1/1", action_call("model", "fx.read", {"a": 1}, call_id="x1")),
        at("1/0", Step("tool:shell.run", "file", {"file": 1, "name": "a.txt", "summary": "S"})),
        at("1/0", Step("tool:shell.run", "widget", {"widget": "w"})),
        at("1/0", action_result("tool:shell.run", "ok")),
        at("2", text("model", "There.")),
    )
    assert [type(m) for m in messages] == [
        UserMessage,
        AssistantMessage,
        ResultMessage,
        ResultMessage,
        AssistantMessage,
    ]
    assert [m.call_id for m in messages[2:4]] == ["c3_1_0", "x1"]  # type: ignore[attr-defined]
    assert [m.texts for m in messages[2:4]] == [  # type: ignore[attr-defined]
        ("ok", "[file a.txt] S"),
        ("Error (not_executed): The turn ended before this ran.",),
    ]
    assert messages[4] == AssistantMessage("There.")


STOPPED = (CALL, at("1/0", action_error("runtime", "cancelled", "Stopped.")))


def test_an_earlier_prompt_in_which_nobody_spoke_has_no_message_of_a_user() -> None:
    """Nor one of the model where it said nothing: the history is what was said, and nothing else (S4)."""
    assert past(at("1", text("model", "Time.")), input=None) == [AssistantMessage("Time.")]
    assert past() == [UserMessage("Hi.")]
    assert past(input=None) == []
    assert past(input=None, continues=True) == []
    assert [type(m) for m in past(*STOPPED, input=None)] == [AssistantMessage, ResultMessage]


@pytest.mark.parametrize(("continues", "line"), [(False, NOBODY_SPOKE), (True, GO_ON)])
def test_for_a_server_that_insists_it_begins_with_a_user_and_ends_with_the_model(continues: bool, line: str) -> None:
    """Or with what stands for their words, so that what is said next is in turn."""
    nobody, ended = UserMessage(line), AssistantMessage(TURN_ENDED)
    strict: dict[str, Any] = {"input": None, "continues": continues, "needs_user": True}
    assert past(at("1", text("model", "Time.")), **strict) == [nobody, AssistantMessage("Time.")]
    assert past(needs_user=True) == [UserMessage("Hi."), ended]
    assert past(**strict) == []
    stopped = past(*STOPPED, **strict)
    assert [type(m) for m in stopped] == [UserMessage, AssistantMessage, ResultMessage, AssistantMessage]
    assert (stopped[0], stopped[-1]) == (nobody, ended)


def test_a_call_id_is_used_once_in_a_conversation() -> None:
    """A provider that repeats ids gets one made of the call's path instead."""
    messages = past(
        at("1/0", action_call("model", "fx.read", call_id="same")),
        at("1/1", action_call("model", "fx.read", call_id="same")),
    )
    assert [c.call_id for c in messages[1].calls] == ["same", "c3_1_1"]  # type: ignore[attr-defined]


def test_an_answer_that_could_not_be_read_is_told_with_its_error() -> None:
    """retry: the raw answer and what was wrong with it (S51)."""
    failed = at("1", action_error("model", "parse_failure", "No JSON.", raw='{"tool'))
    assert past(failed)[1:3] == [AssistantMessage('{"tool'), UserMessage("[error] No JSON. Try again.")]


def test_results_are_rendered_for_a_reader() -> None:
    """Commands as their output and exit; text as it is; other data as JSON (S91)."""
    command = {"stdout": "a\n", "stderr": "b\n", "exit": 1, "seconds": 1.234}
    assert render(command) == "a\nb\nexit: 1 (1.2s)"
    assert render({"ä": 1, "a": {"c": 1, "b": 2}}) == '{"a": {"b": 2, "c": 1}, "ä": 1}'
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 2).startswith("a\n[... truncated: 3 of 4")


def test_a_call_that_only_reads_has_its_times_from_its_result() -> None:
    """It has no start of its own in the ledger: `began` is when it started (S7)."""
    root = Step("user:1", "action_call", {"policy": "agent", "payload": {}}, "", 1, "t1")
    asked = Step("model", "action_call", {"policy": "fx.read", "payload": {"a": 1}}, "1/0", 2, "t2")
    result = Step("tool:fx.read", "action_result", {"output": 1, "began": "t3"}, "1/0", 3, "t4")
    entry = Outputs([root, asked, result]).entry("1/0")
    assert entry
    assert (entry.started_at, entry.ended_at) == ("t3", "t4")
    said = Step("poet", "action_result", {"began": "in May", "ended": "in June"}, "1/0", 3, "t4")
    entry = Outputs([root, asked, said]).entry("1/0")  # a program's own word, which is its value
    assert entry
    assert (entry.started_at, said.value) == ("", {"began": "in May", "ended": "in June"})
