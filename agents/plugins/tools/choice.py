"""The choice of the tools that a conversation's rounds are offered: made once, then added to while there is room.

Pure functions: a choice, the tools that there are now, and what there is room for give the next choice. Tools are given
by name, in their fixed order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel

from agents.engine.tools.tool import Tool
from agents.plugins.tools.fitting import Form, fit, form_at, forms, ranked, sizes_of

FIND = "tools.find"
"""The name of the tool that finds others. It is no part of a choice before something is left out."""
ALWAYS = frozenset({FIND})
"""Tools that have room whatever the limit: without it, what is left out could not be reached."""
FREE = 0.25
"""The part of the limit that a choice leaves free if it has to be made for room: for what is added later."""

FOR_ROOM = "there was no room for it"
"""Why a tool is gone that others took the place of."""


class ToolChoice(BaseModel):
    """Which tools a conversation's rounds are offered, in order: those of the first choice, then what was added.

    `shortened`: how brief the descriptions are that are not whole (1: their first paragraph, 2: their first sentence).
    `left_out`: the tools that the rounds could have, but for room. `wanted`: those of them that were found, or that a
    plugin pushed, in the order in which they get the next room. `gone`: what the last change took away, and why.
    """

    chosen: list[str] = []
    added: list[str] = []
    shortened: dict[str, int] = {}
    left_out: list[str] = []
    wanted: list[str] = []
    gone: dict[str, str] = {}

    @property
    def offered(self) -> list[str]:
        """The names of the tools that are offered, in order."""
        return [*self.chosen, *self.added]

    def bytes(self, tools: Mapping[str, Tool]) -> int:
        """Return what the tools on offer take, of these."""
        return sum(self.form(tools[name]).bytes for name in self.offered)

    def form(self, tool: Tool) -> Form:
        """Return a tool in the form in which it is offered."""
        return form_at(tool, self.shortened.get(tool.name, 0))


def first_choice(
    tools: Mapping[str, Tool], limit: int, text: str | None, pushed: Collection[str] = (), always: Collection[str] = ()
) -> ToolChoice:
    """Return the choice from these tools, if they may take `limit` bytes and a person said this text.

    All are offered whole if there is room. Else descriptions are shortened, those of the least important tools first,
    and only then are tools left out.
    """
    always = ALWAYS | set(always)
    known = [tool for name, tool in tools.items() if name != FIND]
    if sum(forms(tool)[0].bytes for tool in known) <= limit:
        return ToolChoice(chosen=[tool.name for tool in known])
    sizes = sizes_of(ranked(known, text, pushed))
    shortest, room = sum(size[-1] for size in sizes.values()), room_beside_others(limit)
    if shortest > limit:
        sizes |= sizes_of(tool for name, tool in tools.items() if name == FIND)
    elif shortest > room:
        room = shortest
    levels = fit(sizes, room, always)
    return ToolChoice(
        chosen=[name for name in tools if name in levels],
        shortened=_brief(levels),
        left_out=[tool.name for tool in known if tool.name not in levels],
    )


def next_choice(
    before: ToolChoice, tools: Mapping[str, Tool], limit: int, why_gone: Mapping[str, str], pushed: Collection[str] = ()
) -> ToolChoice:
    """Return the choice for the next round: nothing is taken away for room, and what has room is added at the end.

    What is no longer among the tools is gone, for the reason that `why_gone` gives. Added are the wanted tools, then
    those that are new here; if a plugin pushed one that has no room, it is wanted from now on. One for which no others
    could make room is not wanted. If nothing came or went, and nothing waits, it is the same as before.
    """
    if not before.wanted and all(name in tools for name in before.offered) and _with_rest(before, tools) == before:
        return before.model_copy(update={"gone": {}})
    stay = _without(before, {name: why_gone[name] for name in before.offered if name not in tools})
    known = {*before.offered, *before.left_out, FIND}
    wanted = [name for name in before.wanted if name in tools and name not in before.offered]
    new = [tool for name, tool in tools.items() if name not in known]
    sizes = sizes_of([*(tools[name] for name in wanted), *ranked(new, None, pushed)])
    levels = fit(sizes, limit - stay.bytes(tools), ALWAYS)
    added = [name for name in [*wanted, *(tool.name for tool in new)] if name in levels]
    may_wait = [name for name in sizes if name not in levels and (name in wanted or name in pushed)]
    waiting = [name for name in may_wait if sizes[name][-1] <= room_beside_others(limit)]
    return _with_rest(_with(stay, added, levels, waiting), tools)


def is_full(choice: ToolChoice, tools: Mapping[str, Tool], limit: int) -> bool:
    """Whether a tool waits for room, or those on offer take more than the limit: then some of them have to go."""
    return bool(choice.wanted) or choice.bytes(tools) > limit


def choice_with_room(
    before: ToolChoice,
    tools: Mapping[str, Tool],
    limit: int,
    *,
    text: str | None,
    used: Collection[str] = (),
    pushed: Collection[str] = (),
) -> ToolChoice:
    """Return a choice in which others have gone for the wanted tools. It is made between turns only.

    First go those that nobody used (`used`: what the conversation did use) and that were there from the beginning, the
    least important first; then the least important of the others. What stays keeps its place and its description. A
    wanted tool that has no room even so is no longer wanted.
    """
    now = ranked([tools[name] for name in before.offered], text, pushed)
    now.sort(key=lambda tool: tool.name not in used and tool.name not in before.added)
    sizes = sizes_of(tools[name] for name in before.wanted)
    sizes |= {tool.name: [before.form(tool).bytes] for tool in now}
    levels = fit(sizes, room_beside_others(limit), ALWAYS)
    for_room = {name: FOR_ROOM for name in before.offered if name not in levels}
    added = [name for name in before.wanted if name in levels]
    return _with_rest(_with(_without(before, before.gone | for_room), added, levels, []), tools)


def room_beside_others(limit: int) -> int:
    """Return the bytes that a choice may take if it has to be made for room."""
    return int(limit * (1 - FREE))


def unless_same(before: ToolChoice, choice: ToolChoice) -> ToolChoice:
    """Return the choice; the one before if they are the same, with what the last change took away."""
    return before if choice.model_copy(update={"gone": before.gone}) == before else choice


def _without(before: ToolChoice, gone: dict[str, str]) -> ToolChoice:
    """Return the choice without the tools that are gone."""
    return ToolChoice(
        chosen=[name for name in before.chosen if name not in gone],
        added=[name for name in before.added if name not in gone],
        shortened={name: level for name, level in before.shortened.items() if name not in gone},
        gone=gone,
    )


def _with(choice: ToolChoice, added: list[str], levels: Mapping[str, int], wanted: list[str]) -> ToolChoice:
    """Return the choice with these tools added, at their levels, and these wanted."""
    return choice.model_copy(
        update={
            "added": [*choice.added, *added],
            "shortened": choice.shortened | _brief({name: levels[name] for name in added}),
            "wanted": wanted,
        }
    )


def _with_rest(choice: ToolChoice, tools: Mapping[str, Tool]) -> ToolChoice:
    """Return the choice with what it leaves out, and with the tool that finds that.

    The tool stays once it is offered: taking it away would change more of a request than it is worth.
    """
    offered = {*choice.offered, FIND}
    left_out = [name for name in tools if name not in offered]
    find = [FIND] if left_out and FIND in tools and FIND not in choice.offered else []
    return choice.model_copy(update={"added": [*choice.added, *find], "left_out": left_out})


def _brief(levels: Mapping[str, int]) -> dict[str, int]:
    return {name: level for name, level in levels.items() if level}
