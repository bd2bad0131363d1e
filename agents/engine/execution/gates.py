"""Gates: when a call needs a person, what that person is shown, and what their decision applies to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic import AnyUrl, BaseModel

from agents.engine import paths
from agents.engine.decisions import RUNS, Ask, Decision
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON, Step, digest
from agents.engine.outputs.change import Change
from agents.engine.runtime.policy import Runtime
from agents.engine.schema import schema_digest
from agents.engine.secrets import hide, hide_in, references_in
from agents.engine.tools.tool import Tool, ToolCall, required_approval
from agents.engine.view import View

NO_REASON = "Proposed by planning model."
"""The reason shown for a call that gives none itself."""


ANOTHER = "another"
"""The `who` of a gate with four eyes: somebody other than whoever asked for the turn."""


BROKEN = (Exception, SystemExit)
"""What a tool's own rules and words may raise. Whatever it is, the gate closes and a person is asked."""


def is_being_cancelled() -> bool:
    """Whether somebody cancels the running task; else a CancelledError comes from the tool's own code."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@dataclass(frozen=True)
class GateDecision:
    """The decision of a gate. `input` is the edited input, if a person edited it."""

    decision: str
    digest: str = ""
    input: dict[str, JSON] | None = None
    reason: str = ""
    by: str = ""

    @property
    def runs(self) -> bool:
        """Whether this decision lets the call run."""
        return self.decision in RUNS


@dataclass(frozen=True)
class ShownCall:
    """What a person is shown about a call besides its input, and the digest over all of it.

    `change` is what the tool returned. `recorded` is what a gate or its decision records: the facts, and the change as
    it is shown, without the site's secrets. A change that is too large to show is not in it; the facts identify it.
    """

    change: Change | None
    recorded: dict[str, JSON]
    digest: str


def describe_call(tool: Tool, payload: dict[str, JSON], call: ToolCall[Any, Any]) -> ShownCall:
    """Describe this call, with this input, as it is now: what is approved is what runs (I6).

    A call approved as sandboxed does not run without the sandbox; one approved as a change to a text does not run if
    the text has changed since. Raises ToolError if the tool says that the call cannot work.
    """
    change, remarks = _change(tool, call)
    call.change = change  # so that the tool's facts need not compute it again
    shown: dict[str, JSON] = {"facts": facts(tool, call) + remarks}
    if change and not change.too_large:
        shown["change"] = hide_in(change.model_dump())
    return ShownCall(change, shown, shown_digest(tool.name, payload, schema_digest(tool.input), **shown))


def shown_digest(
    tool: str, payload: dict[str, JSON], schema: str, facts: list[str], change: dict[str, JSON] | None = None
) -> str:
    """Return the digest of one exact call, as a person was shown it.

    It covers the tool, its whole input, the digest of its schema, the facts, and the change if it is shown.
    """
    named = {"tool": tool, "input": payload, "schema": schema, "facts": facts}
    return digest(named | {"change": change} if change else named)


def _change(tool: Tool, call: ToolCall[Any, Any]) -> tuple[Change | None, list[str]]:
    """Return what the call would change, and remarks if that is not shown. Raises the tool's ToolError."""
    try:
        change: object = tool.change(call) if tool.change else None
    except ToolError:
        raise
    except BROKEN as error:
        return None, [hide(f"Not shown as a diff: {error}")]
    if not isinstance(change, Change | None):
        return None, [hide(f"Not shown as a diff: a {type(change).__name__} is not a Change")]
    if change and change.too_large:
        sizes = f"{len(change.before or ''):,} characters before, {len(change.after):,} after"
        return change, [f"Not shown as a diff: too large ({sizes}; SHA-256 {digest(change.model_dump())[:16]})."]
    return change, []


def edits(view: View, path: str) -> int:
    """Return how often the call at `path` was edited under four eyes. Each time its next card asked somebody else."""
    number, gate = 0, paths.gate(path)
    while (decided := view.result(gate)) and decided.payload.get("decision") == Decision.EDITED:
        number += 1
        gate = paths.card(path, number)
    return number


def gate_of(view: View, path: str) -> str:
    """Return the path of the gate of the call at `path`; after an edit under four eyes, of the one that asked again."""
    edited = edits(view, path)
    return paths.card(path, edited) if edited else paths.gate(path)


def card_of(view: View, path: str) -> str:
    """Return the path of the card that asks what became of the last attempt of the call at `path`, if it has begun."""
    return paths.card(path, edits(view, path) + len(view.at(path, "action_start")))


def edited_input(view: View, path: str) -> dict[str, JSON] | None:
    """Return the input that a person gave the call at `path` in place of its own; None if nobody did."""
    gate = gate_of(view, path)
    decision, asked = decision_at(view, gate), view.call(gate)
    if decision and decision.input is not None:
        return decision.input
    return asked.payload["payload"]["input"] if asked and edits(view, path) else None


def decision_at(view: View, gate: str) -> GateDecision | None:
    """Return the decision of the gate at this path; None while it is open, or if there is no gate."""
    result = view.result(gate)
    if result is None:
        return None
    said = result.payload
    return GateDecision(
        decision=said.get("decision", ""),
        digest=said.get("digest", ""),
        input=said.get("input"),
        reason=said.get("reason") or said.get("note") or "",
        by=result.actor,
    )


async def approval_reason(tool: Tool, call: ToolCall[Any, Any]) -> str | None:
    """Return why a person must approve this call first; None if nobody must (S29, S30).

    If the tool's own rule fails, or returns what is neither yes nor no, approval is required: better once too often.
    """
    declared = tool.approval
    try:
        if callable(declared):
            declared = declared(call)
            if inspect.isawaitable(declared):
                declared = await declared
        required = required_approval(declared)
    except BROKEN as error:
        failed = f"{type(error).__name__}: {error}" if isinstance(error, SystemExit) else error
        return f"{justification(tool, call)} (its approval rule failed: {failed})"
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return f"{justification(tool, call)} (its approval rule gave itself up)"
    return justification(tool, call) if required is True else required or None


def justification(tool: Tool, call: ToolCall[Any, Any]) -> str:
    """Return one line that says what a call is about to do: the tool's own, or else one made from its arguments (S93).

    That is what it runs or fetches, if it has a `command` or a `url`; else its first text argument.
    """
    if tool.justify:
        try:
            words: object = tool.justify(call.input)
        except BROKEN:
            words = None
        if isinstance(words, str) and words.strip():
            return words
    said = {name: value for name, value in _texts(call.input) if value.strip()}
    for name, verb in (("command", "Run"), ("url", "Fetch")):
        if name in said:
            return f"{verb}: {said[name]}"
    return next(iter(said.values()), NO_REASON)


def _texts(input: BaseModel) -> Iterator[tuple[str, str]]:
    """Yield the text arguments of a call, by name, in the order in which its tool declares them."""
    for name, value in input:
        if isinstance(value, str | AnyUrl):
            yield name, str(value)


def question(
    ask: Ask, tool: Tool, payload: dict[str, JSON], run: Runtime, *, reason: str, named: str, shown: dict[str, JSON]
) -> dict[str, JSON]:
    """Return what a person is asked about a call now: the payload of the `human` call of its gate or card.

    `named` is the digest of the question; `shown` are the facts and the change, as far as they are shown. With the
    tool's title, its preview and what it says of undoing a call, whoever shows it needs no installed tool.
    """
    # Which secret of the run a call names says nothing about the next run's.
    scope = None if ask is not Ask.APPROVE or references_in(payload) else tool.grants(shown.get("facts") or [])
    expires_at = run.services.now() + timedelta(hours=tool.approval_hours or run.limits.approval_hours)
    return {
        "ask": ask.value,
        "tool": tool.name,
        "title": tool.title,
        "preview": tool.preview,
        **({"undoable": tool.undoable} if tool.undoable else {}),
        "input": payload,
        "reason": reason,
        "risk": tool.risk.value,
        "digest": named,
        "schema": schema_digest(tool.input),
        **shown,
        **({"who": ANOTHER} if tool.four_eyes else {}),
        **({"grantable": scope.value} if scope else {}),
        "expires_at": expires_at.isoformat(),
    }


def facts(tool: Tool, call: ToolCall[Any, Any]) -> list[str]:
    """Return what the tool says is true of a call, such as "Not sandboxed", without the site's secrets."""
    try:
        return [hide(str(fact)) for fact in tool.facts(call)] if tool.facts else []
    except BROKEN as error:
        return [hide(f"What else is true of this call is unknown: {error}")]


def approved_details(view: View, gate: str) -> dict[str, JSON]:
    """Return the facts and any change of the call approved at this gate; of the edited call, if it was edited there."""
    asked, result = view.call(gate), view.result(gate)
    told = {**(asked.payload["payload"] if asked else {}), **(result.payload if result else {})}
    return {"facts": told.get("facts") or [], **({"change": told["change"]} if told.get("change") else {})}


def card_digest(started: str, attempt: int) -> str:
    """Return the digest of the question what became of one attempt, made from the digest under which it started.

    It differs for each attempt, so that an answer to an earlier card of the call does not answer this one.
    """
    return digest([started, paths.card("", attempt)])


def ask_about_edit(view: View, gate: Step, edit: Step, expires_at: str) -> list[Step]:
    """Return the steps by which an edit under four eyes ends its gate and asks somebody else about the edited call.

    `edit` is the approval with another input, as it would be recorded; whoever gave it may not approve the call now.
    """
    said = edit.payload | {"decision": Decision.EDITED.value}
    about = {name: said[name] for name in ("input", "digest", "facts", "change") if said.get(name) is not None}
    asked = {name: value for name, value in gate.payload["payload"].items() if name != "change"}
    again = asked | about | {"edited_by": edit.actor, "expires_at": expires_at}
    call = paths.parent(gate.path)
    return [replace(edit, payload=said), gate_call(paths.card(call, edits(view, call) + 1), again)]


def gate_call(gate: str, payload: dict[str, JSON]) -> Step:
    """Return the step that opens the gate or card at this path."""
    return Step("runtime", "action_call", {"policy": paths.HUMAN, "payload": payload}, path=gate)
