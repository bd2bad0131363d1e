"""The inventory of a site, as `manage.py agents` prints it: what agents can use here, and which model answers."""

from __future__ import annotations

from collections.abc import Iterator
from dis import get_instructions
from types import CodeType, FunctionType
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error

from agents import discovery
from agents.engine.root import WORKFLOW
from agents.engine.runtime.policy import Registered
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool
from agents.models import Skill
from agents.providers.common.address import OPENAI
from agents.skills import missing_tools


def collect() -> dict[str, Any]:
    """Return the whole inventory as plain values. The skills are None if the database is not set up yet."""
    skills = _skills()
    found = discovery.installed()
    return {
        "tools": [_tool(tool, skills or []) for tool in found.tools],
        "policies": [_policy(policy) for policy in found.policies],
        "workflows": [_added(policy) for policy in discovery.added() if policy.name.startswith(WORKFLOW)],
        "plugins": [
            {
                "name": plugin.name,
                "order": plugin.order,
                "owner": plugin.__module__,
                "offered_anyway": _offered_anyway(plugin),
            }
            for plugin in found.plugins
        ],
        "services": [{"name": service.name, "owner": service.owner} for service in found.services],
        "skills": skills
        and [
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


def _skills() -> list[Skill] | None:
    try:
        return list(Skill.objects.all())
    except Error:
        return None


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
        "offered": tool.offered,
        "skills": [skill.name for skill in skills if skill.enabled and tool.name in skill.tools],
        "owner": tool.owner,
    }


def _offered_anyway(plugin: type[Plugin[Any]]) -> list[str]:
    """Return the names of the tools that the plugin's own code names, though every round is offered them anyway.

    What a plugin pushes shows only when its time has come, so this looks at its code rather than running it.
    """
    functions = [each for each in vars(plugin).values() if isinstance(each, FunctionType)]
    named = [each.__globals__.get(name) for each in functions for name in _globals_of(each.__code__)]
    return sorted({tool.name for tool in named if isinstance(tool, Tool) and tool.offered})


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names of the globals that a function uses, also in the functions inside it."""
    yield from (each.argval for each in get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def _added(policy: Registered) -> dict[str, Any]:
    """Return what people start by its own name, without the kind before it."""
    return {"name": policy.name.removeprefix(WORKFLOW), "title": policy.title, "owner": policy.owner}


def _policy(policy: Registered) -> dict[str, Any]:
    return {"name": policy.name, "title": policy.title, "offered": policy.offered, "owner": policy.owner}


def _gate(tool: Tool) -> str:
    """Return whether a person is asked before the tool runs."""
    if callable(tool.approval):
        return "by rule"
    return "yes" if tool.approval else "no"


def _without_credentials(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
