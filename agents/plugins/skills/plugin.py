"""The skills plugin: describes all skills to the agent, adds the full text of the active ones and offers their tools.

The tools of skills that are not active are withheld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from agents.engine.interfaces.services import Services
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import wire_name

if TYPE_CHECKING:
    from agents.models import Skill

ACTIVATE, DEACTIVATE = OWN_TOOLS = ("skills.activate", "skills.deactivate")
"""Never withheld while there are skills, even if a skill lists them: without them no skill could be activated."""


class ActiveSkills(BaseModel):
    """The names of the skills that are active in a conversation, in the order in which they were activated."""

    active: list[str] = []


class Skills(Plugin[ActiveSkills]):
    """The skills plugin. It prepares after the plugins that add tools, because it takes some of them out again."""

    name = "skills"
    order = 1000

    async def prepare(self, round: Round) -> None:
        """Add the description of every enabled skill and the text of the active ones to the round.

        An active skill that was deleted or disabled in the meantime is no longer active.
        """
        skills = await enabled_skills(round.services)
        state = round.state(self)
        state.active = [name for name in state.active if name in skills]
        active = [skills[name] for name in state.active]
        withheld = {tool for skill in skills.values() for tool in skill.tools} - {t for s in active for t in s.tools}
        withheld = withheld - set(OWN_TOOLS) if skills else set(OWN_TOOLS)
        round.tools = [tool for tool in round.tools if tool.name not in withheld]
        if skills:
            round.context.append(describe_skills(list(skills.values())))
        round.context += [f"# Skill: {skill.name}\n\n{skill.body.strip()}" for skill in active]


async def enabled_skills(services: Services) -> dict[str, Skill]:
    """Return the skills that agents may activate, by name."""
    return {skill.name: skill for skill in await services.settled(_enabled)}


def _enabled() -> list[Skill]:
    from agents.models import Skill  # tools are declared without Django; this runs only on a site

    return list(Skill.objects.filter(enabled=True))


def describe_skills(skills: list[Skill]) -> str:
    """Return what a model is always told about skills: how to activate one, and one line for each."""
    lines = "\n".join(f"- {skill.name}: {' '.join(skill.description.split())}" for skill in skills)
    activate, deactivate = wire_name(ACTIVATE), wire_name(DEACTIVATE)
    return (
        f"# Skills\n\nBefore work that one of these fits, activate it with {activate}: from your next answer on you see"
        f" its full text and have its tools. When that work is done, deactivate it with {deactivate}.\n\n{lines}"
    )
