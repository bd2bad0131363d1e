"""Scenarios: what the scripted model asks for, and what the person answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.engine.grants.conditions import Condition, Operator
from agents.engine.grants.grant import Scope
from agents.engine.root import AGENT
from conversations.approvals.grants import Remember

USAGE = {"input_tokens": 10, "output_tokens": 5}


def says(text: str, *calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A reply of the scripted server. The ids of its calls are the same in every run."""
    asked = [
        {"name": name, "arguments": arguments, "call_id": f"{text[:4].strip()}_{number}"}
        for number, (name, arguments) in enumerate(calls)
    ]
    return {"text": text, "calls": asked, "usage": USAGE, **more}


@dataclass(frozen=True)
class Scenario:
    """A turn. `answers`: the decision and its reason at a gate's path; every other gate is approved.

    `once`: the paths of calls that must not be done twice. `never`: of those that must not be done at all. `policy`:
    what runs, with this `payload`, in place of the agent; then `agent` is the path of the agent that it calls.
    `remember`: what is granted with the approval at a gate's path. `beside`: it does several things side by side, in
    whatever order they end. `settings`: those of its site. `message`: what the person says. `memories`: what the agent
    keeps of them before, pinned; `kept`: what it keeps of them in the end. `blueprint`: the name, the occasion and the
    text of one that the site has.
    """

    name: str
    rounds: list[dict[str, Any]]
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    policy: str = AGENT
    payload: dict[str, Any] = field(default_factory=dict)
    agent: str = ""
    beside: bool = False
    remember: dict[str, Remember] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    message: str = "go"
    memories: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    blueprint: tuple[str, str, str] | None = None


def _run(path: str, command: str) -> tuple[str, dict[str, Any]]:
    """A command that counts its runs. The sandbox lets it write to its workspace only."""
    return "shell_run", {"command": f"echo {path} >> effects; {command}"}


S99 = Scenario(
    "S99",
    [
        says("I will look.", _run("1/0", "ls")),
        says("Now the date.", _run("2/0", "date")),
        says("Two files, Friday."),
    ],
    once=("1/0", "2/0"),
)
"""Two gates, one after the other, in one turn."""

MIXED = Scenario(
    "mixed",
    [
        says(
            "Eight things.",
            ("fx_read", {"a": 1}),
            ("fx_count", {"name": "a"}),
            ("fx_once", {"name": "q"}),
            ("fx_count", {"name": "b"}),
            ("fx_count", {"nom": 1}),
            ("no_such", {}),
            ("fx_write", {"name": "w"}),
            ("fx_read", {"a": 2}),
        ),
        says("Done."),
    ],
    answers={"1/3/human": ("reject", "Keep b.")},
    once=("1/1", "1/2"),
    never=("1/3", "1/4", "1/5"),
)
"""One call of every sort in one batch: read, approved, ungated, rejected, invalid, unknown, idempotent."""

POLICY = Scenario(
    "policy",
    [says("I count.", ("fx_count", {"name": "b"})), says("Counted.")],
    once=("2", "3", "5/1/0"),
    policy="fx.plan",
    payload={"name": "a"},
    agent="5",
)
"""A program of an app, with gated and other calls of its own, and those of an agent within it."""

WORKFLOW = Scenario(
    "workflow",
    [],
    once=("2", "4/1", "6"),
    policy="workflow:fx.everything",
    payload={"name": "a"},
    beside=True,
)
"""A workflow: calls and a question side by side, another workflow within it, a sleep, and two gated calls."""

TOOLS = Scenario(
    "tools",
    [
        says("I look for a tool.", ("tools_find", {"words": "do what must not be done twice"})),
        says("I use it.", ("fx_count", {"name": "a"})),
        says("Counted."),
    ],
    once=("2/0",),
    settings={"AGENTSITE_TOOL_TOKENS": "1000"},
)
"""Rounds without room for all tools: one that chooses, one that adds what was found and waits at a gate, a last."""

GRANTED = Scenario(
    "granted",
    [
        says("One.", ("fx_note", {"name": "note-a"})),
        says("Two more.", ("fx_note", {"name": "note-b"}), ("fx_note", {"name": "note-c"})),
        says("And two.", ("fx_note", {"name": "note-d"}), ("fx_note", {"name": "note-e"})),
        says("Noted."),
    ],
    once=("1/0", "2/0", "2/1", "3/0", "3/1"),
    remember={
        "1/0/human": Remember(Scope.FIELDS, (Condition("name", Operator.STARTS_WITH, "note-"),), True, uses=3),
    },
)
"""A grant for three more calls: two are decided by it, of the next two one, and a person is asked about the last."""

REMEMBERED = Scenario(
    "remembered",
    [
        says("I keep it.", ("memory_save", {"text": "The refund of Kim is due on Friday.", "pinned": False})),
        says("I look.", ("memory_search", {"words": "refund"})),
        says("Tea is over.", ("memory_forget", {"id": 1})),
        says("Friday."),
    ],
    message="When is the refund of Kim due? And forget the tea.",
    memories=("I prefer green tea.", "My bicycle is red."),
    kept=("My bicycle is red.", "The refund of Kim is due on Friday."),
    blueprint=("Refunds", "a customer wants a refund", "Ask for the receipt first."),
)
"""Rounds that are told of a blueprint and of memories: two, then one more that was saved, then one less."""

SCENARIOS = {scenario.name: scenario for scenario in (S99, MIXED, POLICY, WORKFLOW, TOOLS, GRANTED, REMEMBERED)}
