"""What decides the answers."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.ledger import JSON
from tests.wire.script import ByRound, Call, InOrder, Refusal, Reply, script_from_json


def body(*items: JSON) -> dict[str, Any]:
    return {"model": "m", "input": list(items)}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def batch(*ids: str) -> list[dict[str, Any]]:
    calls = [{"type": "function_call", "call_id": i, "name": "echo", "arguments": "{}"} for i in ids]
    return calls + [{"type": "function_call_output", "call_id": i, "output": "x"} for i in ids]


ONE, TWO, THREE = Reply("one"), Reply("two"), Reply("three")


def test_in_order() -> None:
    """One after another; then the script has ended, and says so in a way that is not retried."""
    script = InOrder([ONE, TWO])
    assert [script({}), script({})] == [ONE, TWO]
    ended = script({}).refusal
    assert ended is not None
    assert (ended.status, ended.code) == (400, "script_ended")


def test_by_round() -> None:
    """The same request gets the same answer, however often: a crash and a repeat change nothing."""
    script = ByRound({"*": [ONE, TWO, THREE]})
    first, second = body(user("go")), body(user("go"), *batch("a", "b"))
    third = body(user("go"), *batch("a", "b"), said("A file: x.txt"), said("More."), *batch("c"))
    assert [script(each) for each in (first, second, third, first, second)] == [ONE, TWO, THREE, ONE, TWO]
    assert script(body(user("go"), *batch("a"), *batch("b"), *batch("c"))).refusal


def test_by_round_begins_again_with_each_message() -> None:
    """Rounds count from the last thing the user said."""
    script = ByRound({"*": [ONE, TWO]})
    assert script(body(user("go"), *batch("a"), said("Done."), user("again"))) == ONE
    assert script(body(user("go"), *batch("a"), said("Done."), user("again"), *batch("b"))) == TWO


def test_by_round_knows_conversations_by_what_was_said() -> None:
    """Each text may have rounds of its own; a system's turn has no text at all."""
    script = ByRound({"one": [ONE], "two": [TWO], "*": [THREE]})
    assert [script(body(user(text))) for text in ("two", "one", "else")] == [TWO, ONE, THREE]
    assert script(body({"role": "developer", "content": "x"})) == THREE
    assert script({"model": "m", "input": "one"}) == ONE


def test_by_round_may_fail_first() -> None:
    """A round may be a list: each repeat of its request gets the next, and then the last for ever."""
    refused = Reply(refusal=Refusal(503))
    script = ByRound({"*": [[refused, ONE], TWO]})
    assert [script(body(user("go"))) for _ in range(3)] == [refused, ONE, ONE]
    assert script(body(user("go"), *batch("a"))) == TWO
    assert script(body(user("other"))) == refused


def test_from_json() -> None:
    """A script as a file says it."""
    call = {"name": "shell_run", "arguments": {"command": "ls"}, "call_id": "c1"}
    script = script_from_json({"go": [{"text": "I will.", "calls": [call]}, [{"refusal": {"status": 429}}]]})
    assert script(body(user("go"))) == Reply("I will.", (Call("shell_run", {"command": "ls"}, "c1"),))
    assert script(body(user("go"), *batch("a"))) == Reply(refusal=Refusal(429))
    assert script_from_json([{"text": "any"}])(body(user("x"))) == Reply("any")


@pytest.mark.parametrize("value", [[{"txt": "x"}], {"go": {"text": "x"}}, [{"calls": [{}]}], [[{"refusal": {"x": 1}}]]])
def test_a_misspelt_script_is_refused(value: JSON) -> None:
    """When it is read, not when it is played."""
    with pytest.raises(TypeError):
        script_from_json(value)
