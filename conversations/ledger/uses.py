"""What decisions can use up: a register of kinds, each with the way to take one.

A verdict names what its decision uses up by kind and id, such as `grant:3`, and the journal takes it in the transaction
of the record that holds the decision. So nothing is used without a decision on record, and nothing is used twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from agents.engine.errors import RegistryError, UsedUp

logger = logging.getLogger(__name__)

Take = Callable[[int], bool]
"""Takes one of what has this id by a conditional UPDATE, in the open transaction. Returns False if none is left."""

_KINDS: dict[str, Take] = {}


def register_usable(kind: str, take: Take) -> None:
    """Add a kind of things that decisions use up, named `<kind>:<id>`. Raises RegistryError if the kind is taken.

    `take` must change at most the row with that id, and only while something of it is left: of two transactions that
    want the last one, the database then lets only one have it. For example
    `Grant.objects.filter(pk=id, left__gt=0).update(left=F("left") - 1) == 1`.
    """
    if kind in _KINDS:
        raise RegistryError(f"{kind!r} is registered twice as something that decisions use up")
    _KINDS[kind] = take


def unregister_usable(kind: str) -> None:
    """Undo `register_usable`, for tests."""
    del _KINDS[kind]


def use_up(names: Iterable[str]) -> None:
    """Take each of these once, in the open transaction.

    Raises UsedUp for the first of which nothing is left: then the transaction must be rolled back. What nothing is
    registered for counts as used up, so that people are asked, and the log says why.
    """
    for name in sorted(names):  # sorted, so that two records cannot deadlock
        kind, _, id = name.partition(":")
        known = kind in _KINDS and id.isascii() and id.isdigit()
        if not known:
            there_are = ", ".join(f"{each}:<id>" for each in sorted(_KINDS)) or "none"
            logger.error("a decision would use up %r, which is not registered; registered: %s", name, there_are)
        if not (known and _KINDS[kind](int(id))):
            raise UsedUp(name)
