"""Finding tools that are left out, by words."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from agents.engine.tools.tool import Tool, wire_name
from agents.plugins.tools.choice import ToolChoice, room_beside_others
from agents.plugins.tools.fitting import first_sentence, fit, forms, scores, sizes_of

FOUND_MOST = 5
"""The most tools that are found at once: more would soon take all the room.

One that matches less than half as well as the best is not found.
"""

ALL_OFFERED = "There are no other tools: you have all of them."
NOW = "You have these from your next answer on:"
LATER = "There is no room for these in this turn. From your next turn on you have them, as far as others make room:"
TOO_LARGE = "These are too large to be offered to you here, whatever else you have:"


class Words(BaseModel):
    """The input of `tools.find`."""

    words: str = Field(min_length=1, max_length=500, description="What the tools should do, in a few words.")


def find_in(choice: ToolChoice, left_out: Mapping[str, Tool], text: str, *, limit: int, room: int) -> str:
    """Return what is told of the left-out tools that match the words best; they are wanted from now on.

    `room` is what is free of the `limit`. It is told which of them the next round adds, and which it cannot.
    """
    if not left_out:
        return ALL_OFFERED
    score = scores(list(left_out.values()), text)
    matching = sorted((name for name in left_out if score[name]), key=lambda name: -score[name])
    if not matching:
        return f"None of the {len(left_out)} other tools matches these words."
    found = [name for name in matching[:FOUND_MOST] if score[name] >= score[matching[0]] / 2]
    more = len(matching) - len(found)
    choice.wanted += [name for name in found if name not in choice.wanted]
    has_room = fit(sizes_of(left_out[name] for name in choice.wanted if name in left_out), room)
    told: dict[str, list[str]] = {NOW: [], LATER: [], TOO_LARGE: []}
    for name in found:
        may_wait = forms(left_out[name])[-1].bytes <= room_beside_others(limit)
        told[NOW if name in has_room else LATER if may_wait else TOO_LARGE].append(_line(left_out[name]))
    lines = [line for heading, of_it in told.items() if of_it for line in (heading, *of_it)]
    return "\n".join([*lines, *([f"{more} more match less well: other words may find them."] if more else [])])


def _line(tool: Tool) -> str:
    return f"- {wire_name(tool.name)}: {first_sentence(tool.description)}"
