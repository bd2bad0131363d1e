from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from agents.inventory import registered


class Command(BaseCommand):
    help = "Print what agents have on this site: tools, plugins in the order in which they prepare, skills, the model."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *_args: object, **options: Any) -> None:
        try:
            found = registered()
        except Error as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"The skills cannot be read ({reason}): run `manage.py migrate`.") from error
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        self._section("Tools, below the module that owns them", _tools(found["tools"]))
        plugins = [(plugin["name"], str(plugin["order"]), plugin["owner"]) for plugin in found["plugins"]]
        self._section("Plugins, in the order in which they prepare a round", [("NAME", "ORDER", "OWNER"), *plugins])
        self._section("Skills", [("NAME", "STATE", "TOOLS"), *map(_skill, found["skills"])])
        self._section("Model", [(name, found["model"][name]) for name in ("api", "server", "normal", "high")])

    def _section(self, title: str, rows: list[tuple[str, ...]]) -> None:
        """Rows in columns; one of a single cell stands for itself, and widens none."""
        self.stdout.write(title)
        columns = zip_longest(*(row for row in rows if len(row) > 1), fillvalue="")
        widths = [max(map(len, column)) for column in columns]
        for row in rows:
            cells = row if len(row) == 1 else map(str.ljust, row, widths)
            self.stdout.write(f"  {'  '.join(cells)}".rstrip())
        self.stdout.write("")


def _tools(tools: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The tools of one module below its name: a column of its own would make the lines too long."""
    rows: list[tuple[str, ...]] = [("NAME", "TITLE", "RISK", "GATE", "STATE OF", "ONLY WITH SKILL")]
    for owner in sorted({tool["owner"] for tool in tools}):
        rows.append((owner,))
        for tool in tools:
            if tool["owner"] == owner:
                told = (tool[name] for name in ("title", "risk", "gate", "plugin"))
                rows.append((f"  {tool['name']}", *told, ", ".join(tool["skills"])))
    return rows


def _skill(skill: dict[str, Any]) -> tuple[str, ...]:
    tools = [f"{name} (not installed)" if name in skill["missing"] else name for name in skill["tools"]]
    return skill["name"], "enabled" if skill["enabled"] else "off", ", ".join(tools)
