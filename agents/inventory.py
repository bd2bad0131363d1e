"""The inventory of a site: what agents can use here, and which model answers.

`manage.py agents` prints it, and the admin's catalogue of tools shows the tools in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from dis import get_instructions
from types import CodeType, FunctionType
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error

from agents import discovery
from agents.engine.agent.offered import OfferedPolicy, offered
from agents.engine.ledger import JSON
from agents.engine.root import WORKFLOW
from agents.engine.runtime.policy import Registered
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool, by_category, wire_name
from agents.models import Blueprint, Skill
from agents.providers.common.address import OPENAI
from agents.skills import missing_tools


@dataclass(frozen=True)
class ToolEntry:
    """A tool in the inventory, or a policy that models may call as they call tools (`is_policy`), as plain values.

    gate: whether a person is asked: "no", "yes" or "by rule"; reason: why, if its author says so. plugin: the one whose
    state it changes. offered: whether every round has it, unless `skills` withhold it: the enabled ones that name it.
    added_by: the plugins whose code names it, for a tool that is not offered by itself. time_limit and approval_hours
    are None where the site's settings hold.
    """

    name: str
    wire_name: str
    title: str
    description: str
    is_policy: bool
    risk: str
    gate: str
    reason: str
    four_eyes: bool
    idempotent: bool
    time_limit: float | None
    approval_hours: float | None
    category: str
    priority: int
    owner: str
    plugin: str
    offered: bool
    added_by: list[str]
    skills: list[str]
    schema: dict[str, JSON]


def catalogue() -> list[ToolEntry]:
    """Return the tools of this site, sorted by name, with the policies that models may call."""
    return _entries(Skill.objects.all())


def collect() -> dict[str, Any]:
    """Return the whole inventory as plain values. Skills and blueprints are None if the database is not set up yet."""
    skills = _skills()
    found = discovery.installed()
    return {
        "tools": [asdict(entry) for entry in _entries(skills or []) if not entry.is_policy],
        "tools_by_category": [tool.name for tool in by_category(found.tools)],
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
        "blueprints": _blueprints(),
        "model": model(),
    }


def _skills() -> list[Skill] | None:
    try:
        return list(Skill.objects.all())
    except Error:
        return None


def _blueprints() -> dict[str, int] | None:
    """Return how many blueprints are enabled, disabled, and proposed and unread; None if the table is missing."""
    try:
        stand = list(Blueprint.objects.values_list("enabled", "proposed"))
    except Error:
        return None
    return {
        "enabled": sum(enabled for enabled, _ in stand),
        "disabled": sum(not enabled and not proposed for enabled, proposed in stand),
        "proposed": sum(proposed for _, proposed in stand),
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


def _entries(skills: Iterable[Skill]) -> list[ToolEntry]:
    found = discovery.installed()
    policies = (offered(policy) for policy in found.policies if policy.offered)
    named = {plugin.name: _tools_named_in(plugin) for plugin in found.plugins}
    enabled = [skill for skill in skills if skill.enabled]
    tools = sorted([*found.tools, *policies], key=lambda tool: tool.name)
    return [_entry(tool, enabled, named) for tool in tools]


def _entry(tool: Tool, skills: Sequence[Skill], named: Mapping[str, Sequence[Tool]]) -> ToolEntry:
    return ToolEntry(
        name=tool.name,
        wire_name=wire_name(tool.name),
        title=tool.title,
        description=tool.description,
        is_policy=isinstance(tool, OfferedPolicy),
        risk=tool.risk.value,
        gate=_gate(tool),
        reason=tool.approval if isinstance(tool.approval, str) else "",
        four_eyes=tool.four_eyes,
        idempotent=bool(tool.idempotent),
        time_limit=tool.time_limit,
        approval_hours=tool.approval_hours,
        category=tool.category.name if tool.category else "",
        priority=tool.priority,
        owner=tool.owner,
        plugin=tool.plugin.name if tool.plugin else "",
        offered=tool.offered,
        added_by=[] if tool.offered else [name for name, tools in named.items() if tool in tools],
        skills=[skill.name for skill in skills if tool.name in skill.tools],
        schema=tool.schema,
    )


def _offered_anyway(plugin: type[Plugin[Any]]) -> list[str]:
    """Return the names of the tools that the plugin's own code names, though every round is offered them anyway."""
    return sorted({tool.name for tool in _tools_named_in(plugin) if tool.offered})


def _tools_named_in(plugin: type[Plugin[Any]]) -> list[Tool]:
    """Return the tools that the plugin's own code names.

    What a plugin pushes shows only when its time has come, so this looks at its code rather than running it.
    """
    functions = [each for each in vars(plugin).values() if isinstance(each, FunctionType)]
    named = [each.__globals__.get(name) for each in functions for name in _globals_of(each.__code__)]
    return [tool for tool in named if isinstance(tool, Tool)]


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
