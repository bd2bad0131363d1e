"""The plugin that chooses which tools an agent is offered if there is no room for all (S68)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agents.engine.limits import BYTES_A_TOKEN
from agents.engine.paths import parent
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Tool, ToolCall, by_category, by_wire_name
from agents.plugins.tools.choice import (
    FIND,
    ToolChoice,
    choice_with_room,
    first_choice,
    is_full,
    next_choice,
    unless_same,
)
from agents.plugins.tools.finding import Words, find_in

WITHHELD, NOT_OFFERED = "a plugin withholds it", "nothing offers it any more"
"""Why tools are gone that are not gone for room."""


class Tools(Plugin[ToolChoice]):
    """The plugin that chooses the tools. It prepares last, because it must know all that the others push or withhold.

    The choice stands in the record of each round's answer that changes it. A conversation begins with one; after that,
    tools are added at the end, and none goes for room except between turns: what a model was sent before stays the
    beginning of what it is sent next. An agent within another, or within a workflow, chooses without such a memory, and
    one whose caller named its tools has all of those.
    """

    name = "tools"
    order = 2000

    async def prepare(self, round: Round) -> None:
        """Leave the chosen tools in the round, in their order, and some with a shorter description."""
        if round.only is not None:
            return
        by_wire_name(round.tools)  # raises if two share a name: of tools by name, one would be lost
        tools = {tool.name: tool for tool in by_category(round.tools)}
        if parent(round.path):
            _offer(round, _choice_without_memory(round, tools), tools)
        elif (answered := round.state_when_answered(self)) and answered.offered:
            _offer(round, answered, _with_installed(round, answered, tools))
        else:
            state = round.state(self)
            choice = await _choice(round, state, tools)
            for field in ToolChoice.model_fields:
                setattr(state, field, getattr(choice, field))
            _offer(round, choice, tools)


async def _choice(round: Round, before: ToolChoice, tools: Mapping[str, Tool]) -> ToolChoice:
    """Return the choice for a round of the conversation, after the one before."""
    limit, pushed = _limit(round), _pushed(round)
    if not before.offered:
        return first_choice(tools, limit, round.input, pushed, round.open_calls)
    declared = {tool.name for tool in round.declared}
    why_gone = {name: WITHHELD if name in declared else NOT_OFFERED for name in before.offered}
    if not any(name in tools for name in before.offered if name != FIND):  # another agent's: nothing of it stays
        return first_choice(tools, limit, round.input, pushed, round.open_calls).model_copy(update={"gone": why_gone})
    choice = next_choice(before, tools, limit, why_gone, pushed)
    if round.number == 1 and is_full(choice, tools, limit):
        used = await round.services.tools_used()
        choice = choice_with_room(choice, tools, limit, text=round.input, used=used, pushed=pushed)
    return unless_same(before, choice)


def _choice_without_memory(round: Round, tools: Mapping[str, Tool]) -> ToolChoice:
    """Return a choice for this round alone. What it leaves out cannot be found: the next round would not know."""
    known = {name: tool for name, tool in tools.items() if name != FIND}
    return first_choice(known, _limit(round), round.input, _pushed(round), round.open_calls)


def _with_installed(round: Round, answered: ToolChoice, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools, with those that an answered round was offered, as far as the site still has them.

    Its open calls run, or wait for a decision, whatever was switched off since.
    """
    missing = (name for name in answered.offered if name not in tools)
    return {**tools, **{name: tool for name in missing if (tool := round.installed(name))}}


def _offer(round: Round, choice: ToolChoice, tools: Mapping[str, Tool]) -> None:
    """Leave the tools of the choice in the round. The one that finds others is bound to what the round leaves out."""
    offered = [choice.form(tools[name]) for name in choice.offered if name in tools]
    names = {form.tool.name for form in offered}
    left_out = {name: tool for name, tool in tools.items() if name not in names}
    limit = _limit(round)
    room = limit - sum(form.bytes for form in offered)

    async def find(call: ToolCall[Words, ToolChoice]) -> str:
        return find_in(call.state, left_out, call.input.words, limit=limit, room=room)

    round.tools = [replace(each.tool, function=find) if each.tool.name == FIND else each.tool for each in offered]


def _limit(round: Round) -> int:
    return round.limits.tool_tokens * BYTES_A_TOKEN


def _pushed(round: Round) -> frozenset[str]:
    return frozenset(tool.name for tool in round.tools) - {tool.name for tool in round.declared}
