"""The memory plugin: tells the agent what it keeps of its person, as far as that fits what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from agents.engine.paths import parent
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import wire_name
from agents.plugins.memory.telling import describe_memories

if TYPE_CHECKING:
    from agents.plugins.memory.keeping import Recalled

SAVE, SEARCH, FORGET = OWN_TOOLS = ("memory.save", "memory.search", "memory.forget")


class Remembered(BaseModel):
    """Which memories fit what was said last, by their numbers, and the `key` of that search.

    The key is a digest of the turn and of the version of the person's memories: nothing that was said is in it. Texts
    are read anew each round, so that the next one is not told of what was forgotten.
    """

    key: str = ""
    found: list[int] = []


class MemoryPlugin(Plugin[Remembered]):
    """The memory plugin. Without memories it tells nothing; where memory is off, it takes its tools out of the round.

    An agent that another policy calls is told nothing either, and has no such tools: it knows what its caller says.
    """

    name = "memory"
    order = 200

    async def prepare(self, round: Round) -> None:
        """Add the pinned memories, and those that fit what was said last, to the round."""
        services, answered = round.services, round.state_when_answered(self) is not None
        on, some = await services.settled(_standing, services.user)
        if parent(round.path) or not (on or answered):  # calls that an answer asked for refuse by themselves
            round.tools = [tool for tool in round.tools if tool.name not in OWN_TOOLS]
        elif some and not answered:
            state = round.state(self)
            found = tuple(state.found)
            now = await services.look_up(_recall, services.user, round.input, state.key, found, services.prompt)
            if now:
                state.key, state.found = now.key, now.found
            if now and now.memories:
                tokens, others = round.limits.memory_tokens, _how_to_find_others(round)
                round.context.append(describe_memories(now.memories, tokens, more=now.more, others=others))


def _how_to_find_others(round: Round) -> str:
    """Return a sentence about the tool that searches; "" in a round without it."""
    searches = any(tool.name == SEARCH for tool in round.tools) and (round.only is None or SEARCH in round.only)
    return f"{wire_name(SEARCH)} finds others." if searches else ""


def _standing(user: int) -> tuple[bool, bool]:
    """Return whether memory is on for this person, and whether there may be some."""
    from agents.plugins.memory import keeping  # tools are declared without Django; this runs only on a site

    return keeping.is_on(user), keeping.has_kept(user)


def _recall(user: int, subject: str | None, key: str, found: Sequence[int], turn: int) -> Recalled | None:
    from agents.plugins.memory.keeping import recall

    return recall(user, subject, key, found, turn)
