"""The gatekeeper: who may lift a gate without asking a person, and whether an approval still holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agents.engine.tools.tool import Tool, ToolCall


@dataclass(frozen=True)
class GateVerdict:
    """A gatekeeper's verdict on a call: leave it to a person, or decide it as `by` (`rule:12`, `grant:3`).

    `uses` names what the decision uses up, once each, such as `grant:3`. The journal takes it in the record with the
    decision; if one of them is used up by then, people are asked after all.
    """

    verdict: Literal["ask", "allow", "deny"] = "ask"
    by: str = ""
    reason: str = ""
    uses: tuple[str, ...] = ()


class Gatekeeper(Protocol):
    """Decides gates without asking a person, by the standing rules and grants that people made."""

    async def decide(self, tool: Tool, call: ToolCall[Any, Any]) -> GateVerdict:
        """Return the verdict on this call. It changes nothing: what the decision uses up, its `uses` name."""
        return GateVerdict()

    async def holds(self, tool: Tool, by: str) -> str | None:
        """Return why this call may not start now, whatever was decided; None if it may.

        `by`: the actor that approved it, or "" if nobody had to. The owner of the conversation must still be active,
        and whoever approved must still be allowed to (C13).
        """
        return None


class AskEverybody(Gatekeeper):
    """No rules, no grants: every gate waits for a person, and permissions do not change."""
