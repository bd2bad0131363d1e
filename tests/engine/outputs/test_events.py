"""Events: what clients are sent about a turn."""

from __future__ import annotations

from agents.engine.ledger import Step
from agents.engine.outputs.events import Event, EventFold


def told(steps: list[Step]) -> list[Event]:
    fold = EventFold(conversation=3, prompt=7)
    return [event for step in steps for event in fold.add(step)]


def a_turn() -> list[Step]:
    gate = {"ask": "approve", "tool": "shell.run", "input": {"command": "ls"}, "reason": "Run: ls", "digest": "d"}
    return [
        Step("user:1", "action_call", {"policy": "agent", "payload": {"text": "go"}}, "", 1, "t"),
        Step("worker:1", "action_start", {"attempt": 1}, "", 2, "t"),
        Step("runtime", "action_call", {"policy": "model", "payload": {"round": 1}}, "1", 3, "t"),
        Step("model", "text", {"text": "I will look."}, "1", 4, "t"),
        Step("model", "action_call", {"policy": "shell.run", "payload": {"command": "ls"}}, "1/0", 5, "t"),
        Step("model", "action_result", {"usage": {}, "model": "m"}, "1", 6, "t"),
        Step("runtime", "action_call", {"policy": "human", "payload": gate}, "1/0/human", 7, "t"),
        Step("runtime", "pause", {"pending_action_count": 1, "steps_used": 1, "steps_remaining": 9}, "", 8, "t"),
        Step("user:2", "action_result", {"decision": "approve", "digest": "d"}, "1/0/human", 9, "t"),
        Step("runtime", "resume", {"resumed_reason": "all_actions_resolved", "steps_remaining": 9}, "", 10, "t"),
        Step("worker:1", "action_start", {"attempt": 2}, "", 11, "t"),
        Step("worker:1", "action_start", {"attempt": 1}, "1/0", 12, "t"),
        Step("tool:shell.run", "action_result", {"output": "a.txt"}, "1/0", 13, "t"),
        Step("runtime", "action_result", {"state": "completed", "stop_reason": "text", "usage": {}}, "", 14, "t"),
    ]


def test_a_turn_is_told_in_order() -> None:
    """Each entry, change, request, decision, pause and resume is an event, numbered by its step (S25, S81, S94)."""
    assert [(event.seq, event.type) for event in told(a_turn())] == [
        (1, "prompt.created"),
        (2, "prompt.started"),
        (4, "output.created"),
        (5, "output.created"),
        (7, "output.updated"),
        (7, "approval.requested"),
        (8, "prompt.paused"),
        (9, "output.updated"),
        (9, "approval.decided"),
        (10, "prompt.resumed"),
        (12, "output.updated"),
        (13, "output.updated"),
        (14, "prompt.completed"),
    ]


def test_an_approval_request_says_what_is_asked() -> None:
    """The event carries the call: tool, input and reason, with conversation and prompt (S32)."""
    (asked,) = [event for event in told(a_turn()) if event.type == "approval.requested"]
    said = asked.model_dump()
    assert (said["conversation"], said["prompt"]) == (3, 7)
    assert (said["output"]["tool"], said["output"]["input"]) == ("shell.run", {"command": "ls"})
    assert said["output"]["approval"]["reason"] == "Run: ls"


def test_a_pause_says_how_much_is_left() -> None:
    """Paused and resumed carry the counts (S84, S85)."""
    paused, resumed = (
        event.model_dump() for event in told(a_turn()) if event.type in ("prompt.paused", "prompt.resumed")
    )
    assert (paused["pending_action_count"], paused["steps_used"], paused["steps_remaining"]) == (1, 1, 9)
    assert (resumed["resumed_reason"], resumed["steps_remaining"]) == ("all_actions_resolved", 9)


def test_a_turn_has_one_end() -> None:
    """There is one terminal event, also where the turn paused before (S44)."""
    ends = [
        event for event in told(a_turn()) if event.type in ("prompt.completed", "prompt.failed", "prompt.cancelled")
    ]
    assert len(ends) == 1


def test_joining_late_tells_only_what_is_new() -> None:
    """A client that has seen the first steps gets the same further events as one that was there all along."""
    steps = a_turn()
    late = EventFold(3, 7, steps[:8])
    assert [e for step in steps[8:] for e in late.add(step)] == [e for e in told(steps) if e.seq > 8]
