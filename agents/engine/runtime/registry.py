"""The registry of policies: each has one name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pydantic import BaseModel

from agents.engine.actors import Actor, Kind
from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON, copy_json
from agents.engine.paths import HUMAN
from agents.engine.runtime.policy import Policy, Registered
from agents.engine.schema import check_schema


class PolicyRegistry:
    """Policies by name. A name has one owner: registering a second raises an error that names both.

    A dict of policies by name makes a registry, too: `PolicyRegistry({"search": search})`.
    """

    def __init__(self, policies: Mapping[str, Policy] | None = None) -> None:
        self._policies: dict[str, Registered] = {}
        for name, policy in (policies or {}).items():
            self.register(name)(policy)

    def register(
        self,
        name: str,
        *,
        description: str = "",
        input: type[BaseModel] | dict[str, JSON] | None = None,
        seconds: float = math.inf,
    ) -> Callable[[Policy], Policy]:
        """Decorator: register a policy as `name`. `input` is a pydantic model or a JSON Schema.

        `seconds`: the running time of a turn that it is the root of, beyond which no tool and no model below it runs;
        an agent has its own, or else the site's. The policy's own code is not interrupted. Raises RegistryError if the
        name is taken, `human` or no text, if it is not a policy, or if `input` is neither.
        """
        given: object = name
        if not given or not isinstance(given, str):
            raise RegistryError(f"the name of a policy must be a text, not {name!r}")
        kind = Actor.parse(name).kind
        if kind in list(Kind) and name != Kind.MODEL:  # its calls would be taken for the engine's own
            raise RegistryError(f"{name!r} reads as an actor of the kind {kind!r}: choose another name")
        limit: object = seconds
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
            raise RegistryError(f"{name!r}: its seconds must be a number from 0 on, not {seconds!r}")
        if name == HUMAN:
            raise RegistryError(f"{HUMAN!r} is the policy by which people decide: choose another name")

        def keep(policy: Policy) -> Policy:
            if not callable(policy):
                raise RegistryError(f"{name!r} is not a policy: pass an async function, or `as_policy(tool)`")
            owner = f"{getattr(policy, '__module__', '?')}.{getattr(policy, '__qualname__', type(policy).__name__)}"
            if name in self._policies:
                raise RegistryError(f"{name!r} is registered twice: by {self._policies[name].owner} and by {owner}")
            about = description or (getattr(policy, "__doc__", None) or "").strip().partition("\n")[0]
            self._policies[name] = Registered(name, policy, about, _checked_input(name, input), owner, seconds)
            return policy

        return keep

    def get(self, name: str) -> Registered | None:
        """Return the policy with this name, or None."""
        return self._policies.get(name)


def _checked_input(name: str, input: object) -> type[BaseModel] | dict[str, JSON] | None:
    if input is None or (isinstance(input, type) and issubclass(input, BaseModel)):
        return input
    if not isinstance(input, dict):
        raise RegistryError(f"{name!r}: its input must be a pydantic model or a JSON Schema, not {input!r}")
    try:
        check_schema(input)
    except (TypeError, ValueError) as error:
        raise RegistryError(f"{name!r}: its input: {error}") from error
    if "object" not in (kind := input.get("type", "object")):
        raise RegistryError(f"{name!r}: its input must be of the type 'object', as payloads are, not {kind!r}")
    kept: dict[str, JSON] = copy_json(input)  # its author may go on changing it
    return kept
