"""A plugin gives the agent abilities: before each round it may push tools and context, and keep typed state."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from agents.engine.tools.round import Round


class Plugin:
    """Subclass it, give it a `name`, and push in `prepare()`. One instance serves every turn: keep nothing on it."""

    name: ClassVar[str] = ""
    order: ClassVar[int] = 100
    """Plugins prepare from the lowest order to the highest, then by name."""

    class State(BaseModel):
        """What the plugin keeps with a conversation; every field needs a default."""

    async def prepare(self, round: Round) -> None:
        """Called before every round, also the first after a pause: push onto `round.tools` and `round.context`."""
