"""The registry: every policy under its one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import BaseModel

from agents.engine.errors import RegistryError
from agents.engine.runtime.policy import Policy, Registered


class PolicyRegistry:
    """Names and the policies behind them. A name has one owner: a second one is refused, naming both."""

    def __init__(self) -> None:
        self._policies: dict[str, Registered] = {}

    def register(
        self, name: str, *, description: str = "", input: type[BaseModel] | None = None
    ) -> Callable[[Policy], Policy]:
        """Decorator: keep the policy under `name`. Raises RegistryError if the name is taken, or if it is no policy."""

        def keep(policy: Policy) -> Policy:
            if not callable(policy):
                raise RegistryError(f"{name!r} is no policy: give a tool as `as_policy(tool)`, else an async function")
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
