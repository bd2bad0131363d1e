"""Taking up a skill and putting it away. Both change only what the conversation itself works with."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool, wire_name
from agents.plugins.skills.plugin import ACTIVATE, DEACTIVATE, Skills, enabled_skills


class SkillName(BaseModel):
    """What both take."""

    name: str = Field(min_length=1, max_length=64, description="The skill's name, as it is listed.")


@tool(
    ACTIVATE,
    risk=Risk.READ,
    category="skills",
    plugin=Skills,
    title="Take up a skill",
    says=lambda asked: f"took up the skill {asked.name}",
)
async def activate(call: ToolCall[SkillName]) -> str:
    """Take up a skill: from your next answer on you are told all of it, and have its tools."""
    skills = await enabled_skills(call.services)
    name = call.input.name
    if name not in skills:
        raise ToolError(f"There is no skill {name!r}. There are: {_listed(skills)}.", code="unknown_skill")
    if name in call.state.active:
        return f"{name} is active already."
    call.state.active.append(name)
    tools = [wire_name(tool) for tool in skills[name].tools]
    return f"{name} is active from your next answer on" + (f", with {', '.join(tools)}." if tools else ".")


@tool(
    DEACTIVATE,
    risk=Risk.READ,
    category="skills",
    plugin=Skills,
    title="Put a skill away",
    says=lambda asked: f"put the skill {asked.name} away",
)
def deactivate(call: ToolCall[SkillName]) -> str:
    """Put a skill away whose work is done: you are no longer told its text, and its tools go."""
    active, name = call.state.active, call.input.name
    if name not in active:
        raise ToolError(f"{name!r} is not active. Active: {_listed(active)}.", code="unknown_skill")
    active.remove(name)
    return f"{name} is put away."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
