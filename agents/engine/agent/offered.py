"""Offered policies: those that models may call, as they call tools. What such a policy calls is gated, not itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from agents.engine.ledger import JSON
from agents.engine.runtime.policy import Registered
from agents.engine.tools.tool import Risk, Tool, ToolCall


class Payload(BaseModel):
    """Any payload: the policy itself says what it takes."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, eq=False, kw_only=True)
class OfferedPolicy(Tool):
    """A policy in the place of a tool: a batch runs it alone, and the model is sent its result.

    After a crash it runs again from the ledger, as every policy does: what it called is not called again.
    """

    registered: Registered

    @property
    def owner(self) -> str:
        """The place that defines it."""
        return self.registered.owner

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its payload."""
        return self.registered.schema

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Return why this payload is invalid; None if it is valid."""
        return self.registered.problem(payload)


def _not_a_function(call: ToolCall[Any]) -> NoReturn:
    raise TypeError(f"{call.tool!r} is a policy: it runs in a turn")


def offered(registered: Registered) -> OfferedPolicy:
    """Return what models are offered of this policy."""
    return OfferedPolicy(
        name=registered.name,
        title=registered.title,
        description=registered.description or registered.title,
        risk=Risk.WRITE,
        approval=False,
        idempotent=True,
        function=_not_a_function,
        input=Payload,
        registered=registered,
    )
