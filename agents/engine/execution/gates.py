"""What a gate is: when a call needs a person, what that person is shown, and what their decision binds."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agents.engine import paths
from agents.engine.decisions import RUNS, Ask
from agents.engine.errors import ToolError
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step, digest
from agents.engine.outputs.change import Change
from agents.engine.schema import schema_digest
from agents.engine.secrets import hide, hide_in
from agents.engine.tools.tool import Tool, ToolCall
from agents.engine.view import View

NO_REASON = "Proposed by planning model."
"""Why a person is asked about a call that says nothing of itself."""


ANOTHER = "another"
"""Who must decide a gate with four eyes: another than whoever asked for the turn."""


@dataclass(frozen=True)
class GateDecision:
    """What was decided at a gate. `input` is there where a person edited it."""

    decision: str
    digest: str = ""
    input: dict[str, JSON] | None = None
    reason: str = ""
    by: str = ""

    @property
    def runs(self) -> bool:
        """Whether the call may run by it."""
        return self.decision in RUNS


@dataclass(frozen=True)
class ShownCall:
    """What a person is shown of a call besides its input, and the digest that binds all of it.

    `change` is what the tool said, `told` the same as it is shown: without the site's secrets, and None where it is too
    large to be shown, so that the facts name it.
    """

    facts: list[str]
    change: Change | None
    shown_change: dict[str, JSON] | None
    digest: str

    @property
    def recorded(self) -> dict[str, JSON]:
        """As it stands in a gate, or in the decision of one. `change` is there where it is shown."""
        return {"facts": self.facts, **({"change": self.shown_change} if self.shown_change else {})}


def describe_call(tool: Tool, payload: dict[str, JSON], call: ToolCall[Any]) -> ShownCall:
    """What this call, with this input, looks like now: what is approved is what runs (I6).

    Approved as sandboxed, it does not run where the sandbox is gone; approved as a change of one text, not where that
    is another by now. Raises ToolError where the tool says that it cannot work.
    """
    change, remarks = _change(tool, call)
    call.change = change  # so that what it says of itself need not work it out again
    holds, told = facts(tool, call) + remarks, _shown_change(change)
    return ShownCall(holds, change, told, shown_digest(tool.name, payload, schema_digest(tool.input), holds, told))


def shown_digest(
    tool: str, payload: dict[str, JSON], schema: str, facts: list[str], change: dict[str, JSON] | None = None
) -> str:
    """Names one exact call as a person was shown it.

    The tool, its whole input and the digest of its schema, what holds of it, and what it would change, where that is
    shown.
    """
    named = {"tool": tool, "input": payload, "schema": schema, "facts": facts}
    return digest(named | {"change": change} if change else named)


def _change(tool: Tool, call: ToolCall[Any]) -> tuple[Change | None, list[str]]:
    """What the call would change, and what is to be said of it where it is not shown. Raises ToolError as the tool."""
    try:
        change = tool.change(call) if tool.change else None
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever else a tool raises, the person is asked
        return None, [hide(f"Not shown as a diff: {error}")]
    if change and change.too_large:
        sizes = f"{len(change.before or ''):,} characters before, {len(change.after):,} after"
        return change, [f"Not shown as a diff: too large ({sizes}; SHA-256 {digest(change.model_dump())[:16]})."]
    return change, []


def _shown_change(change: Change | None) -> dict[str, JSON] | None:
    return hide_in(change.model_dump()) if change and not change.too_large else None


def decision_at(view: View, gate: str) -> GateDecision | None:
    """The decision of the gate at this path; None while it is open or was never asked."""
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


async def approval_reason(tool: Tool, call: ToolCall[Any]) -> str | None:
    """Why a person must decide this call first; None if nobody must (S29, S30).

    A rule of the tool's that fails counts as a yes: better asked once too often.
    """
    declared = tool.approval
    if callable(declared):
        try:
            declared = declared(call)
            if inspect.isawaitable(declared):
                declared = await declared
        except Exception as error:  # noqa: BLE001 - whatever a tool's own rule raises, the gate closes
            return f"{justification(tool, call)} (its approval rule failed: {error})"
    if declared is True:
        return justification(tool, call)
    return str(declared) if declared else None


def justification(tool: Tool, call: ToolCall[Any]) -> str:
    """One line that says what a call is about to do, from its arguments (S93)."""
    if tool.justify:
        try:
            return tool.justify(call.input)
        except Exception:  # noqa: BLE001 - whatever a tool's own words raise, the person is asked
            return f"Run {tool.title}"
    for name, value in call.input:
        if isinstance(value, str) and value:
            return f"{name}: {value}"
    return NO_REASON


def gate_payload(
    tool: Tool, payload: dict[str, JSON], shown: ShownCall, reason: str, expires_at: str
) -> dict[str, JSON]:
    """What a person is asked: the payload of the `human` call."""
    return {
        "ask": Ask.APPROVE.value,
        "tool": tool.name,
        "input": payload,
        "reason": reason,
        "risk": tool.risk.value,
        "digest": shown.digest,
        "schema": schema_digest(tool.input),
        **shown.recorded,
        **({"who": ANOTHER} if tool.four_eyes else {}),
        "expires_at": expires_at,
    }


def facts(tool: Tool, call: ToolCall[Any]) -> list[str]:
    """What holds about a call besides its input, as the tool says it, without the site's secrets: "Not sandboxed"."""
    try:
        return [hide(str(fact)) for fact in tool.facts(call)] if tool.facts else []
    except Exception as error:  # noqa: BLE001 - whatever a tool's own words raise, the person is asked
        return [hide(f"What else holds of this call is unknown: {error}")]


def approved_details(view: View, gate: str) -> dict[str, JSON]:
    """The facts, and the change if there is one, of the call that was approved at this gate: asked about, or edited."""
    asked, result = view.call(gate), view.result(gate)
    told = {**(asked.payload["payload"] if asked else {}), **(result.payload if result else {})}
    return {"facts": told.get("facts") or [], **({"change": told["change"]} if told.get("change") else {})}


def card_digest(started: str, attempt: int) -> str:
    """Names the question what became of one attempt, by the digest under which it started.

    An answer to an earlier card of the call is none to this one.
    """
    return digest([started, paths.card("", attempt)])


def card_payload(tool: Tool, payload: dict[str, JSON], named: str, change: JSON, expires_at: str) -> dict[str, JSON]:
    """The card of a call that began and whose end nobody saw: *it ran*, *it did not*, *run again*.

    `named` is the card's digest, `change` what the call was to change, as it was approved.
    """
    return {
        "ask": Ask.INTERRUPTED.value,
        "tool": tool.name,
        "input": payload,
        "reason": "This was started, and the worker stopped before its result was recorded. Did it run?",
        "risk": tool.risk.value,
        "digest": named,
        "schema": schema_digest(tool.input),
        **({"change": change} if change else {}),
        **({"who": ANOTHER} if tool.four_eyes else {}),
        "expires_at": expires_at,
    }


def expiry_time(services: Services, hours: float) -> str:
    """When a gate that opens now, and stays open for so many hours, is no longer waited for (ISO 8601)."""
    return (services.now() + timedelta(hours=hours)).isoformat()


def gate_call(gate: str, payload: dict[str, JSON]) -> Step:
    """The step that opens the gate, or the card, at this path."""
    return Step("runtime", "action_call", {"policy": paths.HUMAN, "payload": payload}, path=gate)
