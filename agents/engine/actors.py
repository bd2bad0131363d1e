"""Actors: who did a step. The ledger stores an actor as text, `user:3` or `model`; this module takes it apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """The kinds of actors. Those in the first group have an id."""

    USER = "user"
    TOOL = "tool"
    PLUGIN = "plugin"
    POLICY = "policy"
    WORKER = "worker"
    RULE = "rule"
    GRANT = "grant"

    MODEL = "model"
    RUNTIME = "runtime"
    SYSTEM = "system"


@dataclass(frozen=True)
class Actor:
    """Who did a step. `kind` is a Kind in the ledgers we write; a ledger from elsewhere may hold any text.

    `id` is the primary key of a user, rule or grant, the name of a tool, plugin or policy, or the `host/process` of a
    worker; "" for kinds without one.
    """

    kind: str
    id: str = ""

    @staticmethod
    @lru_cache(maxsize=1024)  # a few actors account for all steps, and the actor of every step is looked up
    def parse(text: str) -> Actor:
        """Return the actor named by this text from a ledger. Never raises."""
        kind, _, id = text.partition(":")
        return Actor(kind, id)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else str(self.kind)

    @property
    def pk(self) -> int | None:
        """Return the id as a primary key, or None if it is not a number."""
        return int(self.id) if self.id.isascii() and self.id.isdigit() else None


def user(pk: int) -> str:
    """Return the text of a person's actor."""
    return str(Actor(Kind.USER, str(pk)))


def tool(name: str) -> str:
    """Return the text of a tool's actor."""
    return str(Actor(Kind.TOOL, name))


def plugin(name: str) -> str:
    """Return the text of a plugin's actor."""
    return str(Actor(Kind.PLUGIN, name))


def policy(name: str) -> str:
    """Return the text of the actor of a policy that calls others."""
    return str(Actor(Kind.POLICY, name))


def worker(id: str) -> str:
    """Return the text of a worker's actor."""
    return str(Actor(Kind.WORKER, id))
