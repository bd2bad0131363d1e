"""The registry of policies: each has one name."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from agents.engine.errors import RegistryError
from agents.engine.runtime.policy import Policy, Registered


class PolicyRegistry:
    """Policies by name. A name has one owner: registering a second raises an error that names both."""

    def __init__(self) -> None:
        self._policies: dict[str, Registered] = {}

    def register(
        self, name: str, *, description: str = "", input: type[BaseModel] | None = None
    ) -> Callable[[Policy], Policy]:
        """Decorator: register a policy as `name`. Raises RegistryError if the name is taken or it is not a policy."""

        def keep(policy: Policy) -> Policy:
            if not callable(policy):
                raise RegistryError(f"{name!r} is not a policy: pass an async function, or `as_policy(tool)`")
            owner = f"{getattr(policy, '__module__', '?')}.{getattr(policy, '__qualname__', type(policy).__name__)}"
            if name in self._policies:
                raise RegistryError(f"{name!r} is registered twice: by {self._policies[name].owner} and by {owner}")
            about = description or (getattr(policy, "__doc__", None) or "").strip().partition("\n")[0]
            self._policies[name] = Registered(name, policy, about, input, owner)
            return policy

        return keep

    def get(self, name: str) -> Registered | None:
        """Return the policy with this name, or None."""
        return self._policies.get(name)
