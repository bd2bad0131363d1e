"""What can be started by name: policies of apps, and whatever registers here, such as workflows.

A turn of it is recorded like any other; only its payload is its own. Pages, the API, triggers and commands start by
name, and nobody below imports who registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agents import discovery
from agents.engine.actors import Kind
from agents.engine.complaints import sentence
from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON, canonical
from agents.engine.root import AGENT
from agents.engine.runtime.policy import Registered
from agents.engine.schema import plain_json
from agents.engine.tools.tool import NAME

if TYPE_CHECKING:  # workflows are tested without a site, and there are no tables then
    from django.contrib.auth.models import User

    from conversations.files.uploads import Upload

PERMISSION = "conversations.start_policy"
"""The permission to start policies of apps by name."""
PAYLOAD_MOST = 200_000
"""Maximum length of a payload as JSON, in characters. Longer texts are sent as files."""


class UnknownPolicy(Exception):
    """There is nothing of this name that could be started."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no policy {name[:200]!r} that can be started.")


class NotAllowed(Exception):
    """This person may not start it."""

    def __init__(self, name: str, why: str = "") -> None:
        super().__init__(why or f"You may not start {name[:200]!r}.")


class InvalidInput(ValueError):
    """An input that is refused. `fields`: the reasons, by place, such as `days` or `stops.0`; "" for all of it."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        super().__init__("; ".join(f"{place or 'input'}: {' '.join(why)}" for place, why in fields.items()))
        self.fields = dict(fields)


@dataclass(frozen=True)
class Checked:
    """An input that was accepted: the payload that is recorded, and values that must not be, by name.

    `files`: those that go into the workspace of the turn, by name. The payload has their names until they are `placed`.
    """

    payload: dict[str, JSON]
    secrets: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Upload] = field(default_factory=dict)


class Startable(Protocol):
    """Something that people start by name, with an input of their own. Its policy is registered as `<kind>:<name>`."""

    @property
    def kind(self) -> str:
        """What sort of thing it is, in one lower-case word, such as `workflow`."""
        ...

    @property
    def name(self) -> str:
        """Its name among those of its kind."""
        ...

    @property
    def title(self) -> str:
        """What people read."""
        ...

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its input."""
        ...

    @property
    def schedulable(self) -> bool:
        """Whether it may be started while nobody is there."""
        ...

    def may(self, user: User) -> bool:
        """Whether this person may start it."""
        ...

    def checked(self, input: dict[str, JSON], user: User) -> Checked:
        """Return what is recorded of this input. Raises InvalidInput."""
        ...

    def placed(self, payload: dict[str, JSON], paths: Mapping[str, str]) -> dict[str, JSON]:
        """Return the payload with the paths of the accepted files in the workspace, by name."""
        ...

    def summary(self, payload: dict[str, JSON]) -> str:
        """Return what is asked with this payload, in words; "" if its title says enough."""
        ...

    def given(self, payload: dict[str, JSON]) -> dict[str, JSON]:
        """Return the input in a payload that was recorded, as people gave it."""
        ...

    @property
    def page(self) -> str:
        """The address of its page; "" if it has none."""
        ...

    def again(self, prompt: int) -> str:
        """Return the address of a form with the input of this prompt, to start it again; "" if it has none."""
        ...


@dataclass(frozen=True)
class AppPolicy:
    """A policy of an app. Its name is that of its policy."""

    registered: Registered
    kind = "policy"
    schedulable = True

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.registered.name

    @property
    def title(self) -> str:
        """What people read."""
        return self.registered.title

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its payload."""
        return self.registered.schema

    def may(self, user: User) -> bool:
        """Whether this person has the permission to start policies, and this is one that people start."""
        return self.registered.startable and user.has_perm(PERMISSION)

    def checked(self, input: dict[str, JSON], user: User) -> Checked:
        """Return the input, if it is one that the policy declares. Raises InvalidInput."""
        if found := self.registered.problems(input):
            raise InvalidInput(_by_place(found))
        return Checked(input)

    def placed(self, payload: dict[str, JSON], paths: Mapping[str, str]) -> dict[str, JSON]:
        """Return the payload: it has no files."""
        return payload

    def summary(self, payload: dict[str, JSON]) -> str:
        """Return nothing: its title is what was asked."""
        return ""

    def given(self, payload: dict[str, JSON]) -> dict[str, JSON]:
        """Return all of it."""
        return payload

    @property
    def page(self) -> str:
        """There is none."""
        return ""

    def again(self, prompt: int) -> str:
        """Return nothing: it is asked again as it is."""
        return ""


_REGISTER: dict[str, Startable] = {}


def register(startable: Startable, policy: Registered) -> None:
    """Let people start this. Its policy is registered as `<kind>:<name>`; no model is offered it.

    Call it from `AppConfig.ready()`. Raises RegistryError if the name is taken, or if kind or name are none.
    """
    kind, name = startable.kind, startable.name
    if not (re.fullmatch("[a-z]+", kind) and re.fullmatch(NAME, name)) or kind in list(Kind):
        raise RegistryError(f"{kind!r} and {name!r} name nothing: use a lower-case word, and such words joined by dots")
    if policy.name != f"{kind}:{name}":
        raise RegistryError(f"the policy of {name!r} must be called {kind}:{name}, not {policy.name!r}")
    discovery.add(policy)
    _REGISTER[f"{kind}:{name}"] = startable


def unregister(name: str) -> None:
    """Undo `register`, for tests."""
    del _REGISTER[name]
    discovery.remove(name)


def find(policy: str) -> Startable:
    """Return what is started under the name of this policy. Raises UnknownPolicy, also for the agent, and for tools."""
    if registered := _REGISTER.get(policy):
        return registered
    if found := discovery.installed_policy(policy):
        return AppPolicy(found)
    raise UnknownPolicy(policy)


def find_for(user: User, policy: str) -> Startable:
    """Return what this person may start under this name. Raises UnknownPolicy and NotAllowed.

    Who may start no policies of apps is not told which there are.
    """
    try:
        found = find(policy)
    except UnknownPolicy:
        if user.has_perm(PERMISSION):
            raise
        raise NotAllowed(policy) from None
    if not found.may(user):
        raise NotAllowed(policy)
    return found


def checked(found: Startable, input: object, user: User) -> Checked:
    """Return what is recorded of this input. Raises InvalidInput, also for what is no JSON object, or is too long."""
    try:
        given = plain_json(input, "the input")
    except (TypeError, ValueError) as error:
        raise InvalidInput({"": [f"This is not JSON: {error}."]}) from error
    if not isinstance(given, dict):
        raise InvalidInput({"": ["Send a JSON object."]})
    _measure(given)  # before it is checked, which takes long for a long one
    accepted = found.checked(given, user)
    _measure(accepted.payload)
    return accepted


def _measure(payload: dict[str, JSON]) -> None:
    """Raise InvalidInput if this is too long."""
    if (length := len(canonical(payload))) > PAYLOAD_MOST:
        raise InvalidInput({"": [f"At most {PAYLOAD_MOST:,} characters of JSON are accepted; this has {length:,}."]})


def registered() -> list[Startable]:
    """Return all that has registered, by kind and title."""
    return sorted(_REGISTER.values(), key=lambda each: (each.kind, each.title))


def title_of(policy: str) -> str:
    """Return the title of a policy; its name, if it is no longer installed."""
    found = found_or_none(policy)
    return found.title if found else policy


def found_or_none(policy: str) -> Startable | None:
    """Return what is started under the name of this policy; None for the agent, and if it is no longer installed."""
    try:
        return find(policy)
    except UnknownPolicy:
        return None


def again_at(policy: str, prompt: int) -> str:
    """Return the address of a form with which a turn of this policy is started again; "" if it has none."""
    found = found_or_none(policy)
    return found.again(prompt) if found else ""


def goes_on(policy: str) -> bool:
    """Whether a turn of this policy can be continued by another: that of an agent can, a program begins anew."""
    found = discovery.installed_policy(policy)
    return policy == AGENT or (found is not None and found.goes_on)


def _by_place(found: list[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for place, why in found:
        places.setdefault(place, []).append(sentence(why))
    return places
