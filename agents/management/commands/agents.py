from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents import inventory

NOT_SET_UP = ("They are in the database, which cannot be read: `manage.py serve` sets it up.",)


class Command(BaseCommand):
    help = (
        "List what agents can use on this site, and what people start: tools, policies, workflows, plugins, services,"
        " skills, blueprints and the model."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the list as JSON, for programs.")

    def handle(self, *_args: object, **options: Any) -> None:
        found = inventory.collect()
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        self._section("Tools, by the module that defines them", _tools(found["tools"]))
        self._section("Tools by category, in the order in which agents are offered them", _in_order(found))
        if found["policies"]:
            self._section(
                "Policies", [("NAME", "TITLE", "OFFERED TO MODELS", "OWNER"), *map(_policy, found["policies"])]
            )
        if found["workflows"]:
            self._section("Workflows", [("NAME", "TITLE", "OWNER"), *map(_workflow, found["workflows"])])
        self._section("Plugins, in the order in which they prepare a round", _plugins(found["plugins"]))
        if services := [(service["name"], service["owner"]) for service in found["services"]]:
            self._section("Services", [("NAME", "OWNER"), *services])
        self._section("Skills", _skills(found["skills"]))
        self._section("Blueprints", _blueprints(found["blueprints"]))
        self._section("Model", [(name, found["model"][name]) for name in ("api", "server", "normal", "high")])

    def _section(self, title: str, rows: list[tuple[str, ...]]) -> None:
        """Print a title and rows in columns. A row of a single cell is a heading and does not widen any column."""
        self.stdout.write(title)
        columns = zip_longest(*(row for row in rows if len(row) > 1), fillvalue="")
        widths = [max(map(len, column)) for column in columns]
        for row in rows:
            cells = row if len(row) == 1 else map(str.ljust, row, widths)
            self.stdout.write(f"  {'  '.join(cells)}".rstrip())
        self.stdout.write("")


def _tools(tools: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the tools of each module below its name. A column for the module would make the lines too long."""
    rows: list[tuple[str, ...]] = [("NAME", "TITLE", "RISK", "GATE", "STATE OF", "ONLY WITH")]
    for owner in sorted({tool["owner"] for tool in tools}):
        rows.append((owner,))
        for tool in tools:
            if tool["owner"] == owner:
                cells = (tool[name] for name in ("title", "risk", "gate", "plugin"))
                only_with = [
                    *([] if tool["offered"] else ["a plugin or workflow"]),
                    *(f"skill {name}" for name in tool["skills"]),
                ]
                rows.append((f"  {tool['name']}", *cells, ", ".join(only_with)))
    return rows


def _in_order(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the tools below their categories. A higher priority comes first where there is no room for all."""
    tools, category = {tool["name"]: tool for tool in found["tools"]}, None
    rows: list[tuple[str, ...]] = [("NAME", "PRIORITY")]
    for name in found["tools_by_category"]:
        if tools[name]["category"] != category:
            category = tools[name]["category"]
            rows.append((category or "(no category)",))
        rows.append((f"  {name}", str(tools[name]["priority"])))
    return rows


def _plugins(plugins: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the plugins, and below each a line for every tool that it adds for nothing."""
    rows: list[tuple[str, ...]] = [("NAME", "ORDER", "OWNER")]
    for plugin in plugins:
        rows.append((plugin["name"], str(plugin["order"]), plugin["owner"]))
        rows += [(f"  {tool} is offered anyway: declare it with offered=False",) for tool in plugin["offered_anyway"]]
    return rows


def _policy(policy: dict[str, Any]) -> tuple[str, ...]:
    return policy["name"], policy["title"], "yes" if policy["offered"] else "no", policy["owner"]


def _workflow(workflow: dict[str, Any]) -> tuple[str, ...]:
    return workflow["name"], workflow["title"], workflow["owner"]


def _blueprints(counts: dict[str, int] | None) -> list[tuple[str, ...]]:
    return [NOT_SET_UP] if counts is None else [(state, str(count)) for state, count in counts.items()]


def _skills(skills: list[dict[str, Any]] | None) -> list[tuple[str, ...]]:
    if skills is None:
        return [NOT_SET_UP]
    return [("NAME", "STATE", "TOOLS"), *map(_skill, skills)]


def _skill(skill: dict[str, Any]) -> tuple[str, ...]:
    tools = [f"{name} (not installed)" if name in skill["missing"] else name for name in skill["tools"]]
    return skill["name"], "enabled" if skill["enabled"] else "off", ", ".join(tools)
