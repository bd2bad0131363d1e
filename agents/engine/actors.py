"""Actors: who did a step. In the ledger an actor is a text, `user:3` or `model`; here it has its parts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """What kind of actor it is. Those of the first group have an id."""

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
    """Who did a step. `kind` is one of Kind in the ledgers we write; a ledger from outside may hold any text.

    `id` is the primary key of a user, a rule or a grant, the name of a tool, a plugin or a policy, and `host/pid` of a
    worker; "" for kinds that have none.
    """

    kind: str
    id: str = ""

    @classmethod
    def parse(cls, text: str) -> Actor:
        """The actor that this text of a ledger names. Never raises."""
        return _parsed(text)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else str(self.kind)

    @property
    def pk(self) -> int | None:
        """The primary key in its id; None where that is none."""
        return int(self.id) if self.id.isascii() and self.id.isdigit() else None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Actor:
    """Few actors say all steps, and each step is asked for its own."""
    kind, _, id = text.partition(":")
    return Actor(kind, id)


def user(pk: int) -> str:
    """A person, as a step names them."""
    return str(Actor(Kind.USER, str(pk)))


def tool(name: str) -> str:
    """A tool, as a step names it."""
    return str(Actor(Kind.TOOL, name))


def plugin(name: str) -> str:
    """A plugin, as a step names it."""
    return str(Actor(Kind.PLUGIN, name))


def policy(name: str) -> str:
    """A policy that calls others, as a step names it."""
    return str(Actor(Kind.POLICY, name))


def worker(id: str) -> str:
    """A worker, as a step names it."""
    return str(Actor(Kind.WORKER, id))
