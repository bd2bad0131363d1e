"""The inventory of a site, as `manage.py agents` prints it: tools, plugins, skills and the model."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from agents import discovery
from agents.engine.tools.tool import Tool
from agents.models import Skill
from agents.providers.common.address import OPENAI
from agents.skills import missing_tools


def collect() -> dict[str, Any]:
    """Return the whole inventory as plain values. Raises django.db.Error if the skills cannot be read."""
    skills = list(Skill.objects.all())
    found = discovery.installed()
    return {
        "tools": [_tool(tool, skills) for tool in found.tools],
        "plugins": [
            {"name": plugin.name, "order": plugin.order, "owner": plugin.__module__} for plugin in found.plugins
        ],
        "skills": [
            {
                "name": skill.name,
                "enabled": skill.enabled,
                "tools": skill.tools,
                "missing": list(missing_tools(skill.tools)),
            }
            for skill in skills
        ],
        "model": model(),
    }


def model() -> dict[str, str]:
    """Return which model answers: the API, the server without its credentials, and a model's name for each tier."""
    demo = not settings.OPENAI_API_KEY and not settings.OPENAI_BASE_URL
    names = ("demo", "demo") if demo else (settings.AGENTSITE_MODEL_NORMAL, settings.AGENTSITE_MODEL_HIGH)
    server = (
        "the demo model that `manage.py serve` starts"
        if demo
        else _without_credentials(settings.OPENAI_BASE_URL or OPENAI)
    )
    return {"api": settings.AGENTSITE_MODEL_API, "server": server, "normal": names[0], "high": names[1]}


def _tool(tool: Tool, skills: list[Skill]) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "risk": tool.risk.value,
        "gate": _gate(tool),
        "plugin": tool.plugin.name if tool.plugin else "",
        "skills": [skill.name for skill in skills if skill.enabled and tool.name in skill.tools],
        "owner": tool.function.__module__,
    }


def _gate(tool: Tool) -> str:
    """Return whether a person is asked before the tool runs."""
    if callable(tool.approval):
        return "by rule"
    return "yes" if tool.approval else "no"


def _without_credentials(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
