"""The registry of policies: each has one name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from pydantic import BaseModel

from agents.engine.actors import Actor, Kind
from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON, copy_json
from agents.engine.paths import HUMAN
from agents.engine.runtime.policy import Policy, Registered
from agents.engine.runtime.short import FILE, SHOW, VALUE
from agents.engine.schema import check_schema
from agents.engine.tools.tool import NAME, RESERVED
from agents.engine.view import SLEEP

BUILT_IN = (HUMAN, SHOW, FILE, VALUE, SLEEP)
"""The names of what every run has. No policy can be registered under them."""


def policy(
    name: str,
    *,
    input: type[BaseModel] | dict[str, JSON] | None = None,
    title: str = "",
    description: str = "",
    offered: bool = False,
    startable: bool = True,
    seconds: float = math.inf,
) -> Callable[[Policy], Registered]:
    """Decorator: make a registered policy of an async function of an action and a context, or of an agent.

    `input`: what its payload must be, a pydantic model or a JSON Schema. `title`: what people read of it; by default
    its name. `description`: what a model reads of it; by default the first line of its docstring. `offered`: whether
    models may call it. `startable`: whether people who may start policies can start it by name. `seconds`: the running
    time of a turn that it is the root of.

    Raises RegistryError for a name that is reserved, or is not lower-case words joined by dots, and as `register` does.
    """
    if not re.fullmatch(NAME, name):
        raise RegistryError(f"a policy's name must be lower-case words joined by dots, not {name!r}")
    if name in RESERVED:
        raise RegistryError(f"{name!r} is reserved for a policy of the engine")
    return _registering(
        name,
        input=input,
        title=title,
        description=description,
        offered=offered,
        startable=startable,
        seconds=seconds,
    )


class PolicyRegistry:
    """Policies by name. A name has one owner: registering a second raises an error that names both.

    A dict of policies by name makes a registry, too: `PolicyRegistry({"search": search})`.
    """

    def __init__(self, policies: Mapping[str, Policy | Registered] | None = None) -> None:
        self._policies: dict[str, Registered] = {}
        for name, given in (policies or {}).items():
            if isinstance(given, Registered):
                self.add(given)
            else:
                self.register(name)(given)

    def add(self, registered: Registered) -> None:
        """Add a registered policy under its name. Raises RegistryError, naming both owners, if that is taken."""
        name = registered.name
        if name in self._policies:
            owners = f"{self._policies[name].owner} and by {registered.owner}"
            raise RegistryError(f"{name!r} is registered twice: by {owners}")
        self._policies[name] = registered

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
        name is taken, that of a built-in policy or no text, if it is not a policy, or if `input` is neither.
        """
        registering = _registering(name, description=description, input=input, seconds=seconds)

        def keep(policy: Policy) -> Policy:
            self.add(registering(policy))
            return policy

        return keep

    def get(self, name: str) -> Registered | None:
        """Return the policy with this name, or None."""
        return self._policies.get(name)


def _registering(
    name: str,
    *,
    description: str,
    input: type[BaseModel] | dict[str, JSON] | None,
    seconds: float,
    title: str = "",
    offered: bool = False,
    startable: bool = True,
) -> Callable[[Policy], Registered]:
    """Return the decorator that makes a registered policy of a function."""
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
    if name in BUILT_IN:
        raise RegistryError(f"{name!r} is a policy that every run has: choose another name")

    def registered(policy: Policy) -> Registered:
        if not callable(policy):
            raise RegistryError(f"{name!r} is not a policy: pass an async function, or `as_policy(tool)`")
        owner = f"{getattr(policy, '__module__', '?')}.{getattr(policy, '__qualname__', type(policy).__name__)}"
        about = description or (getattr(policy, "__doc__", None) or "").strip().partition("\n")[0]
        checked = _checked_input(name, input)
        return Registered(
            name, policy, about, checked, owner, seconds, title=title or name, offered=offered, startable=startable
        )

    return registered


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
