"""Tells an agent which skills there are, and all of those that are active; holds back the tools of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.engine.interfaces.services import Services
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import wire_name

if TYPE_CHECKING:
    from agents.models import Skill

ACTIVATE, DEACTIVATE = OWN_TOOLS = ("skills.activate", "skills.deactivate")
"""Never held back while there are skills, whatever a skill names: nobody could take one up without them."""


class Skills(Plugin):
    """See the module. It prepares after the plugins that push tools, because it takes some of them out again."""

    name = "skills"
    order = 1000

    class State(BaseModel):
        """The names of the skills that the conversation works with, in the order in which they were taken up."""

        active: list[str] = []

    async def prepare(self, round: Round) -> None:
        """Describe every enabled skill, tell the active ones; one that is gone meanwhile is active no more."""
        skills = await enabled_skills(round.services)
        state: Any = round.state(self)
        state.active = [name for name in state.active if name in skills]
        active = [skills[name] for name in state.active]
        held = {tool for skill in skills.values() for tool in skill.tools} - {t for s in active for t in s.tools}
        held = held - set(OWN_TOOLS) if skills else set(OWN_TOOLS)
        round.tools = [tool for tool in round.tools if tool.name not in held]
        if skills:
            round.context.append(description_of(list(skills.values())))
        round.context += [f"# Skill: {skill.name}\n\n{skill.body.strip()}" for skill in active]


async def enabled_skills(services: Services) -> dict[str, Skill]:
    """The skills that agents may take up, by name."""
    return {skill.name: skill for skill in await services.look_up(_enabled)}


def _enabled() -> list[Skill]:
    from agents.models import Skill  # tools are declared without Django; this runs where there is a site

    return list(Skill.objects.filter(enabled=True))


def description_of(skills: list[Skill]) -> str:
    """What a model is always told: one line for each skill, and how it takes one up."""
    lines = [f"- {skill.name}: {' '.join(skill.description.split())}" for skill in skills]
    activate, deactivate = wire_name(ACTIVATE), wire_name(DEACTIVATE)
    return "\n".join(
        [
            "# Skills",
            "",
            f"Before work that one of these fits, take it up with {activate}: from your next answer on you are told"
            f" all of it and have its tools. {deactivate} puts it away when that work is done.",
            "",
            *lines,
        ]
    )
