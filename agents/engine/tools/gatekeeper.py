"""The gatekeeper: who may lift a gate without asking a person, and whether an approval still holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agents.engine.tools.tool import Tool, ToolCall


@dataclass(frozen=True)
class GateVerdict:
    """What a gatekeeper says of a call: leave it to a person, or decide it as `by` (`rule:12`, `grant:3`)."""

    verdict: Literal["ask", "allow", "deny"] = "ask"
    by: str = ""
    reason: str = ""


class Gatekeeper(Protocol):
    """Who may decide a gate without asking: standing rules and grants that people made."""

    async def decide(self, tool: Tool, call: ToolCall[Any]) -> GateVerdict:
        """What stands for this call. What it uses up must be used up in the record that tells of the decision."""
        ...

    async def holds(self, tool: Tool, by: str) -> str | None:
        """Why this call may not start now, whatever was decided; None where it may.

        `by`: the actor that approved it, "" where nobody had to. Whoever owns the conversation must still be there, and
        whoever approved must still be somebody who may (C13).
        """
        ...


class AskEverybody:
    """No rules, no grants: every gate waits for a person."""

    async def decide(self, tool: Tool, call: ToolCall[Any]) -> GateVerdict:
        """Leave it to a person."""
        return GateVerdict()

    async def holds(self, tool: Tool, by: str) -> str | None:
        """Nobody loses a permission here."""
        return None
