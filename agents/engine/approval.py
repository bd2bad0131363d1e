"""What a gate is: when a call needs a person, what that person is shown, and what their decision binds."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agents.engine.ledger import JSON, Step, digest
from agents.engine.schema import parse, schema_digest
from agents.engine.view import View, join

if TYPE_CHECKING:
    from agents.engine.services import Services
    from agents.engine.tools import Tool, ToolCall


@dataclass(frozen=True)
class Verdict:
    """What a gatekeeper says of a call: leave it to a person, or decide it as `by` (`rule:12`, `grant:3`)."""

    verdict: Literal["ask", "allow", "deny"] = "ask"
    by: str = ""
    reason: str = ""


class Gatekeeper(Protocol):
    """Who may decide a gate without asking: standing rules and grants that people made."""

    async def decide(self, tool: Tool, call: ToolCall[Any]) -> Verdict:
        """What stands for this call. What it uses up must be used up in the record that tells of the decision."""
        ...


class AskEverybody:
    """No rules, no grants: every gate waits for a person."""

    async def decide(self, tool: Tool, call: ToolCall[Any]) -> Verdict:
        """Leave it to a person."""
        return Verdict()


@dataclass(frozen=True)
class Decision:
    """What was decided at a gate. `input` is there where a person edited it."""

    decision: str
    digest: str = ""
    input: dict[str, JSON] | None = None
    reason: str = ""
    by: str = ""
    payload: dict[str, JSON] = field(default_factory=dict)


def call_digest(tool: Tool, payload: dict[str, JSON]) -> str:
    """Names one exact call as a person was shown it: the tool, its whole input and its schema, and what holds of it.

    What is approved is what runs (I6): approved as sandboxed, it does not run where the sandbox is gone.
    """
    return shown_digest(tool.name, payload, schema_digest(tool.input), facts(tool, payload))


def shown_digest(tool: str, payload: dict[str, JSON], schema: str, facts: list[str]) -> str:
    """The same of a call whose tool is not there, by its name, the digest of its schema, and what holds of it."""
    return digest({"tool": tool, "input": payload, "schema": schema, "facts": facts})


def decision_at(view: View, gate: str) -> Decision | None:
    """The decision of the gate at this path; None while it is open or was never asked."""
    result = view.result(gate)
    if result is None:
        return None
    said = result.payload
    return Decision(
        decision=said.get("decision", ""),
        digest=said.get("digest", ""),
        input=said.get("input"),
        reason=said.get("reason") or said.get("note") or "",
        by=result.actor,
        payload=said,
    )


async def requirement(tool: Tool, call: ToolCall[Any]) -> str | None:
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
    return "Proposed by planning model."


def gate_payload(
    tool: Tool, call: ToolCall[Any], payload: dict[str, JSON], reason: str, hours: float
) -> dict[str, JSON]:
    """What a person is asked: the payload of the `human` call. `hours`: how long it stays open."""
    return {
        "ask": "approve",
        "tool": tool.name,
        "input": payload,
        "reason": reason,
        "risk": tool.risk.value,
        "digest": call_digest(tool, payload),
        "schema": schema_digest(tool.input),
        "facts": facts(tool, payload),
        "expires_at": expires(call.services, hours),
    }


def facts(tool: Tool, payload: dict[str, JSON]) -> list[str]:
    """What holds about a call besides its input, as the tool says it: "Not sandboxed"."""
    try:
        return [str(fact) for fact in tool.facts(parse(tool.input, payload))] if tool.facts else []
    except Exception as error:  # noqa: BLE001 - whatever a tool's own words raise, the person is asked
        return [f"What else holds of this call is unknown: {error}"]


def card_digest(tool: Tool, payload: dict[str, JSON], card: str) -> str:
    """Names the question what became of one attempt: an answer to an earlier card of the call is none to this one."""
    return digest([call_digest(tool, payload), card])


def interrupted_payload(
    tool: Tool, payload: dict[str, JSON], card: str, services: Services, hours: float
) -> dict[str, JSON]:
    """The card of a call that began and whose end nobody saw: *it ran*, *it did not*, *run again*."""
    return {
        "ask": "interrupted",
        "tool": tool.name,
        "input": payload,
        "reason": "This was started, and the worker stopped before its result was recorded. Did it run?",
        "risk": tool.risk.value,
        "digest": card_digest(tool, payload, card),
        "schema": schema_digest(tool.input),
        "expires_at": expires(services, hours),
    }


def expires(services: Services, hours: float) -> str:
    """When a gate that opens now is no longer waited for (ISO 8601)."""
    return (services.now() + timedelta(hours=hours)).isoformat()


def ask(path: str, payload: dict[str, JSON], key: str = "human") -> Step:
    """The step that opens a gate below the call at `path`."""
    return Step("runtime", "action_call", {"policy": "human", "payload": payload}, path=join(path, key))
