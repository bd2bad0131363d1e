"""What a model reads of calls that people decided about: that they failed, and why; of approvals, nothing (S100)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.decisions import DECISIONS, Ask, Decision, Outcome
from agents.engine.interfaces.messages import ResultMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, action_call, action_error
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, numbered
from tests.engine.support import call, carry_on, decide, digest_of, open_gates, results_in, says

ROOT = Path(__file__).parents[3]
OF_APPROVALS = re.compile(
    r"approv|\bgates?\b|\bpause|\bpending|\bdeci(d|sion)|four eyes|\bcards?\b|\bwait(s|ed|ing)? for (a person|some)",
    re.IGNORECASE,
)
"""Words that would tell a model that the turn stopped for a person."""

SOURCES = (
    *(ROOT / "agents" / "engine").rglob("*.py"),
    *(ROOT / "agents" / "plugins").rglob("*.py"),
    *(ROOT / "conversations" / "worker").rglob("*.py"),
    *(ROOT / "workflows" / "shipped").rglob("tools.py"),
    ROOT / "conversations" / "approvals" / "gatekeeper.py",
    ROOT / "conversations" / "ledger" / "locked.py",
    ROOT / "conversations" / "ledger" / "given_up.py",
    ROOT / "workflows" / "definition.py",
)
ERRORS = {"ToolError", "action_error", "close_turn", "close_calls", "NotKept"}
"""What makes the result of a call that did not succeed."""
TO_AUTHORS = {"A policy asks people to 'approve' or a 'question', not "}
"""Told to whoever wrote a policy that asks people in a wrong way."""

REJECTED = says("I will.", call("shell.run", command="ls"))


def texts_of_errors() -> set[str]:
    """Every text in a function that makes such a result, or in a constant that it names; of the gatekeeper, all."""
    found: set[str] = set()
    for source in SOURCES:
        module = ast.parse(source.read_text())
        constants = {
            target.id: node.value
            for node in module.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for function in ast.walk(module):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            named = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            if named & ERRORS or any(name.endswith("_error") for name in named) or source.stem == "gatekeeper":
                found.update(_texts(function))
                found.update(text for name in named & constants.keys() for text in _texts(constants[name]))
    return found


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts below a node that have several words; docstrings are for people who read code."""
    about = {
        id(each.body[0].value)
        for each in ast.walk(node)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(each.body[0], ast.Expr)
    }
    for each in ast.walk(node):
        text = each.value if isinstance(each, ast.Constant) and id(each) not in about else None
        if isinstance(text, str) and " " in text.strip():
            yield text


def told(code: str, message: str) -> str:
    """What a later turn's model reads of a call that ended with this error."""
    steps = [replace(action_call("model", "shell.run"), path="1/0"), action_error("runtime", code, message, path="1/0")]
    outputs = Outputs(numbered(EMPTY, steps)).in_order()
    *_, result = turn_messages(PastTurn(1, "Go.", outputs), CallIds(), Limits())
    assert isinstance(result, ResultMessage)
    return result.content


def test_no_text_of_a_result_speaks_of_approvals() -> None:
    """Whatever the engine, its tools and the site may make the result of a call."""
    texts = texts_of_errors() - TO_AUTHORS
    assert any("The tool changed before this call ran" in text for text in texts)
    assert any("Permissions changed" in text for text in texts)
    assert len(texts) > 100
    assert [text for text in sorted(texts) if OF_APPROVALS.search(told("failed", text))] == []


@pytest.mark.parametrize("decision", [d for d, rule in DECISIONS.items() if rule.outcome in ("refuse", "result")])
def test_no_decision_does(decision: Decision) -> None:
    """Each way in which a call does not run, by its code and its words."""
    rule = DECISIONS[decision]
    words = told(rule.state if rule.outcome is Outcome.REFUSE else decision, rule.told)
    assert not OF_APPROVALS.search(words)
    assert rule.told or decision is Decision.ANSWER


@pytest.mark.parametrize(
    ("decided", "said", "reads"),
    [
        ("reject", {"reason": "Keep b."}, "Error (rejected): Keep b."),
        ("reject", {}, "Error (rejected): A person rejected this call."),
        ("expired", {}, "Error (expired): This was not done in time."),
        ("cancelled", {}, "Error (cancelled): Cancelled before it ran."),
        ("approve", {}, "did ls\nexit: 0 (1.2s)"),
    ],
)
async def test_it_reads_as_a_call_that_failed_or_ran(
    world: World, decided: str, said: dict[str, Any], reads: str
) -> None:
    """With the person's reason, where one was given (S35, R11)."""
    registry, provider = site([REJECTED, says("Done.")], world.tools())
    await carry_on(registry, decide(await carry_on(registry), "1/0/human", decided, **said))
    assert results_in(provider.asked[1]) == [reads]
    assert not OF_APPROVALS.search(reads)


async def test_an_edited_call_reads_as_one_that_a_person_changed(world: World) -> None:
    """The model did not ask for this input, and has to know; how it came to that, it need not."""
    tools = world.tools()
    registry, provider = site([REJECTED, says("Done.")], tools)
    edited: dict[str, Any] = {"command": "ls -l"}
    shell = next(tool for tool in tools if tool.name == "shell.run")
    waiting = await carry_on(registry)
    await carry_on(registry, decide(waiting, "1/0/human", input=edited, digest=digest_of(shell, edited)))
    (reads,) = results_in(provider.asked[1])
    assert reads == "[A person changed the input of this call.]\n\ndid ls -l\nexit: 0 (1.2s)"
    assert not OF_APPROVALS.search(reads)


@pytest.mark.parametrize("answer", [each for each, rule in DECISIONS.items() if Ask.INTERRUPTED in rule.asks])
async def test_an_interrupted_call_reads_as_what_became_of_it(world: World, answer: Decision) -> None:
    """Whatever its owner says, or if nobody does."""
    journal = CrashingJournal(crash=CrashPoint(3))
    registry, provider = site([says("I will.", call("report.write", name="q")), says("Done.")], world.tools())
    with pytest.raises(Crash):
        await carry_on(registry, journal=journal)
    waiting = await carry_on(registry, journal.ledger)
    assert open_gates(waiting) == ["1/0/card1"]
    await carry_on(registry, decide(waiting, "1/0/card1", answer.value))
    (reads,) = results_in(provider.asked[-1])
    assert reads.startswith("wrote q" if answer is Decision.RUN_AGAIN else "Error (")
    assert not OF_APPROVALS.search(reads)
