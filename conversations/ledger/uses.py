"""What decisions can use up: a register of kinds, each with the ways to take one and to give it back.

A verdict names what its decision uses up by kind and id, such as `grant:3`, and the journal takes it in the transaction
of the record that holds the decision. So nothing is used without a decision on record, and nothing is used twice. What
a grant is used for, and that then does not start, is given back in the record that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from agents.engine.errors import RegistryError, UsedUp

logger = logging.getLogger(__name__)

Take = Callable[[int], bool]
"""Takes one of what has this id by a conditional UPDATE, in the open transaction. Returns False if none is left."""

GiveBack = Callable[[int], None]
"""Gives one of it back, in the open transaction."""


class Usable(NamedTuple):
    """A kind of things that decisions use up."""

    take: Take
    give_back: GiveBack


_KINDS: dict[str, Usable] = {}


def register_usable(kind: str, take: Take, give_back: GiveBack) -> None:
    """Add a kind of things that decisions use up, named `<kind>:<id>`. Raises RegistryError if the kind is taken.

    `take` must change at most the row with that id, and only while something of it is left: of two transactions that
    want the last one, the database then lets only one have it. For example
    `Grant.objects.filter(pk=id, left__gt=0).update(left=F("left") - 1) == 1`.
    """
    if kind in _KINDS:
        raise RegistryError(f"{kind!r} is registered twice as something that decisions use up")
    _KINDS[kind] = Usable(take, give_back)


def unregister_usable(kind: str) -> None:
    """Undo `register_usable`, for tests."""
    del _KINDS[kind]


def use_up(name: str) -> None:
    """Take this once, in the open transaction. Raises UsedUp if nothing of it is left.

    What nothing is registered for counts as used up, so that people are asked, and the log says why.
    """
    kind, _, id = name.partition(":")
    known = kind in _KINDS and id.isascii() and id.isdigit()
    if not known:
        there_are = ", ".join(f"{each}:<id>" for each in sorted(_KINDS)) or "none"
        logger.error("a decision would use up %r, which is not registered; registered: %s", name, there_are)
    if not (known and _KINDS[kind].take(int(id))):
        raise UsedUp(name)


def give_back(name: str) -> None:
    """Give this back once, in the open transaction."""
    kind, _, id = name.partition(":")
    if kind in _KINDS and id.isascii() and id.isdigit():
        _KINDS[kind].give_back(int(id))
