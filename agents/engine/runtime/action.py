"""Actions: what a policy is called with, and so what it is to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from agents.engine.ledger import EMPTY, JSON, Ledger, copy_json
from agents.engine.references import OfRun, referred
from agents.engine.schema import schema_of


@dataclass(frozen=True)
class Action:
    """A policy to call, its payload, and the names of the policies that it may offer and call itself.

    The payload is copied: whoever made the action may go on changing its own dict. A value in it may be a Ledger, which
    is kept as it is and recorded as a reference, or a pydantic model, recorded as its JSON Schema. Raises TypeError for
    a payload that is not JSON, and for what is no name.

    `secrets`: the keys at which whoever made it put a secret of the run. What looks like one elsewhere was written by
    somebody else.
    """

    policy: str
    payload: dict[str, Any] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.payload, dict):
            raise TypeError(f"the payload of an action must be a dict, not {type(self.payload).__name__}")
        copied = {k: v if _is_kept(v) else copy_json(referred(v, k), f"payload.{k}") for k, v in self.payload.items()}
        name: object = self.policy
        if not isinstance(name, str):
            raise TypeError(f"an action names a policy by a text, not by {name!r}")
        offered: object = self.actions
        if isinstance(offered, str):
            raise TypeError(f"the actions must be a set of names, not a text: {{{offered!r}}}")
        if not isinstance(offered, Iterable) or not all(isinstance(each, str) for each in offered):
            raise TypeError(f"the actions must be a set of names, not {offered!r}")
        given = {key for key, value in self.payload.items() if isinstance(value, OfRun)}
        object.__setattr__(self, "secrets", self.secrets | given)
        object.__setattr__(self, "payload", copied)
        object.__setattr__(self, "actions", frozenset(self.actions))

    @property
    def ledger(self) -> Ledger:
        """The ledger in the payload, under `ledger`; empty if there is none. Raises TypeError for anything else."""
        given = self.payload.get("ledger", EMPTY)
        if not isinstance(given, Ledger):
            raise TypeError(f"payload.ledger must be a Ledger, not a {type(given).__name__}: wrap steps in Ledger(...)")
        return given

    def copy(self) -> Action:
        """Return an action that shares nothing with this one, not even the payloads of the steps in a ledger."""
        ledgers = {k: Ledger(tuple(map(replace, v))) for k, v in self.payload.items() if isinstance(v, Ledger)}
        return replace(self, payload=self.payload | ledgers)

    def recorded(self) -> dict[str, JSON]:
        """Return the payload as it is recorded in the ledger."""
        return {k: _reference(v) if _is_kept(v) else v for k, v in self.payload.items()}


def _is_kept(value: object) -> bool:
    """Whether a value in a payload is not JSON itself, but stands in the record by what describes it."""
    return isinstance(value, Ledger) or (isinstance(value, type) and issubclass(value, BaseModel))


def _reference(value: Ledger | type[BaseModel]) -> JSON:
    return value.reference() if isinstance(value, Ledger) else schema_of(value)
