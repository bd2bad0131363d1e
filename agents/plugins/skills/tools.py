"""The tools that activate and deactivate a skill. Both change only the conversation's own state."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from agents.categories import SKILLS
from agents.engine.errors import ToolError
from agents.engine.tools.tool import NEEDED, Risk, ToolCall, tool
from agents.plugins.skills.plugin import ACTIVATE, DEACTIVATE, ActiveSkills, Skills, enabled_skills


class SkillName(BaseModel):
    """The input of both tools."""

    name: str = Field(min_length=1, max_length=64, description="The skill's name, as listed.")


@tool(
    ACTIVATE,
    risk=Risk.READ,
    category=SKILLS,
    priority=NEEDED,
    plugin=Skills,
    title="Activate a skill",
    says=lambda asked: f"activated the skill {asked.name}",
)
async def activate(call: ToolCall[SkillName, ActiveSkills]) -> str:
    """Activate a skill: from your next answer on you see its full text and have its tools."""
    skills = await enabled_skills(call.services)
    name = call.input.name
    if name not in skills:
        raise ToolError(f"There is no skill {name!r}. There are: {_join(skills)}.", code="unknown_skill")
    if name in call.state.active:
        return f"{name} is already active."
    call.state.active.append(name)
    return f"{name} is active from your next answer on."


@tool(
    DEACTIVATE,
    risk=Risk.READ,
    category=SKILLS,
    priority=NEEDED,
    plugin=Skills,
    title="Deactivate a skill",
    says=lambda asked: f"deactivated the skill {asked.name}",
)
def deactivate(call: ToolCall[SkillName, ActiveSkills]) -> str:
    """Deactivate a skill when its work is done: you no longer see its text or have its tools."""
    active, name = call.state.active, call.input.name
    if name not in active:
        raise ToolError(f"{name!r} is not active. Active: {_join(active)}.", code="unknown_skill")
    active.remove(name)
    return f"{name} is no longer active."


def _join(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
