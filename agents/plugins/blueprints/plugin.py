"""The blueprints plugin: tells an agent of the blueprints that fit what was said best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from agents.engine.ledger import digest
from agents.engine.paths import parent
from agents.engine.tools.plugin import Plugin, Round
from agents.plugins.blueprints.catalogue import Seen, find, groups_of, read, read_catalogue
from agents.plugins.blueprints.telling import fitting, told

if TYPE_CHECKING:
    from agents.models import Blueprint

PROPOSE = "blueprints.propose"


class Named(BaseModel):
    """A blueprint that stands in a round, as it was then: on record, it keeps this name and version."""

    id: int
    name: str
    version: int


class Standing(BaseModel):
    """The blueprints that stand in the rounds of a turn.

    `key` is the digest of what they were searched for by, and among which: only another key is another search.
    """

    turn: int = 0
    key: str = ""
    found: list[Named] = []


class Blueprints(Plugin[Standing]):
    """The blueprints plugin. What stands in a round is on record with its answer.

    They are searched for once in a turn, and again after somebody has changed one of those that the person's agent may
    be told of, or the groups that the person is in. An agent that another policy calls, such as a workflow, is told of
    none: it knows what its caller says.
    """

    name = "blueprints"

    async def prepare(self, round: Round) -> None:
        """Add the blueprints to the round. Nothing is read of a round that has its answer: no model is told of it."""
        tokens = round.limits.blueprint_tokens
        if not tokens:
            round.tools = [tool for tool in round.tools if tool.name != PROPOSE]
        if parent(round.path) or round.state_when_answered(self) is not None:
            return
        if standing := await self._standing(round, await _seen(round)):
            round.context.append(told(standing, tokens))

    async def _standing(self, round: Round, seen: Seen) -> list[Blueprint]:
        """Return the blueprints for this round of a turn, and keep in the state which they are."""
        state, tokens = round.state(self), round.limits.blueprint_tokens
        key = digest([round.input, seen.version, tokens]) if seen.ids else ""
        # A turn that only goes on has no input: then those stay that it began with.
        ids = [each.id for each in state.found if each.id in seen.ids]
        if key != state.key and round.input is not None:
            ids = await _found(round, seen)
        standing = fitting(await round.services.settled(read, tuple(ids)), tokens) if ids else []
        named = [Named(id=each.pk, name=each.name, version=each.version) for each in standing]
        state.key, state.found = key, named
        if key:
            state.turn = round.services.prompt
        return standing


async def _seen(round: Round) -> Seen:
    """Return what the agent of this person may be told of; nothing if blueprints are switched off, or there are none.

    A site without blueprints asks for nothing else.
    """
    catalogue = await round.services.settled(read_catalogue)
    if not round.limits.blueprint_tokens or not catalogue.versions:
        return Seen(frozenset(), "")
    return catalogue.seen_by(await round.services.settled(groups_of, round.services.user))


async def _found(round: Round, seen: Seen) -> list[int]:
    if not seen.ids or not round.input:
        return []
    return await round.services.look_up(find, round.input, seen.ids, round.limits.blueprint_tokens)
