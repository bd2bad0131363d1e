"""Everything that acts is a policy: the model, a tool, a person who approves, an agent, a workflow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON, Ledger, Step
from agents.engine.schema import problem, schema_of

if TYPE_CHECKING:
    from agents.engine.runtime.context import Context


@dataclass(frozen=True)
class Action:
    """A policy to call, what to tell it, and the names of the policies it may offer and call itself.

    A Ledger may stand in the payload as a value: it is recorded as a reference, never copied.
    """

    policy: str
    payload: dict[str, Any] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.payload is None:
            raise TypeError("the payload of an action is a dict, never None")
        object.__setattr__(self, "actions", frozenset(self.actions))

    def recorded(self) -> dict[str, JSON]:
        """The payload as the ledger keeps it."""
        return {k: v.reference() if isinstance(v, Ledger) else v for k, v in self.payload.items()}


Policy = Callable[[Action, "Context"], Awaitable[list[Step]]]
"""What acts: returns the steps it said. An `action_call` among them is asked for, not done."""


def records_itself(policy: Policy) -> Policy:
    """Mark a policy that reaches outside only after a record of its own: its call is recorded together with that."""
    policy.records_itself = True  # type: ignore[attr-defined]
    return policy


@dataclass(frozen=True)
class Registered:
    """A policy under its name."""

    name: str
    policy: Policy
    description: str = ""
    input: type[BaseModel] | None = None
    owner: str = ""

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its payload; any object where it declares none."""
        return schema_of(self.input) if self.input else {"type": "object"}

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Why this payload is refused, in one line; None if it is fine."""
        return problem(self.input, payload) if self.input else None


class PolicyRegistry:
    """Names and the policies behind them. A name has one owner: a second one is refused, naming both."""

    def __init__(self) -> None:
        self._policies: dict[str, Registered] = {}

    def register(
        self, name: str, *, description: str = "", input: type[BaseModel] | None = None
    ) -> Callable[[Policy], Policy]:
        """Decorator: keep the policy under `name`. Raises RegistryError if the name is taken."""

        def keep(policy: Policy) -> Policy:
            owner = f"{getattr(policy, '__module__', '?')}.{getattr(policy, '__qualname__', type(policy).__name__)}"
            if name in self._policies:
                raise RegistryError(f"{name!r} is registered twice: by {self._policies[name].owner} and by {owner}")
            about = description or (getattr(policy, "__doc__", None) or "").strip().partition("\n")[0]
            self._policies[name] = Registered(name, policy, about, input, owner)
            return policy

        return keep

    def get(self, name: str) -> Registered | None:
        """The policy of this name, if there is one."""
        return self._policies.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._policies

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._policies.values())
