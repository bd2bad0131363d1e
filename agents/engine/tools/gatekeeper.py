"""The gatekeeper: who may lift a gate without asking a person, and whether an approval still holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.engine.grants.grant import Asked
from agents.engine.ledger import JSON
from agents.engine.tools.tool import Tool, ToolCall


@dataclass(frozen=True)
class GateVerdict:
    """A gatekeeper's verdict on a call: leave it to a person, or decide it as `by` (`rule:12`, `grant:3`).

    `uses` names what the decision uses up, once each, such as `grant:3`. The journal takes it in the record with the
    decision; if one of them is used up by then, people are asked after all. `record` is what the decision says besides,
    so that whoever reads the ledger can follow it.
    """

    verdict: Literal["ask", "allow", "deny"] = "ask"
    by: str = ""
    reason: str = ""
    uses: tuple[str, ...] = ()
    record: dict[str, JSON] = field(default_factory=dict)


class Gatekeeper(Protocol):
    """Decides gates without asking a person, by the standing rules and grants that people made."""

    async def decide(self, tool: Tool, call: ToolCall[Any, Any], asked: Asked) -> GateVerdict:
        """Return the verdict on this call. It changes nothing: what the decision uses up, its `uses` name."""
        return GateVerdict()

    async def holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
        """Return why this call may not start now, whatever was decided; None if it may.

        `by`: the actor that approved it, and `asked` what it approved; "" and None if nobody had to. The owner of the
        conversation must still be active, and whoever approved must still be allowed to (C13).
        """
        return None


class AskEverybody(Gatekeeper):
    """No rules, no grants: every gate waits for a person, and permissions do not change."""
