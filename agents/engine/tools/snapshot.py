"""Snapshots: what a model saw of a round besides the messages, and what is declared of its tools, as stored text.

Whoever reads one needs no installed tool: those that only a plugin or a server knows may be gone by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from agents.engine.ledger import JSON, canonical
from agents.engine.tools.tool import Tool, wire_name

_kept: WeakKeyDictionary[Tool, str] = WeakKeyDictionary()
"""The text of each tool, as long as there is the tool: an app, or the form that a client gives, may make new ones."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool as a round was offered it, by its wire name.

    `title` is "" in snapshots from before what is declared of tools was stored; the fields after it say nothing then.
    """

    name: str
    description: str
    schema: dict[str, JSON]
    title: str = ""
    preview: str = ""
    risk: str = ""
    idempotent: bool = False
    always_asks: bool = False


def snapshot_text(system: str, tools: Iterable[Tool]) -> str:
    """Return the system text and the tools, in their order, as canonical JSON. It is stored once per content."""
    return f'{{"system":{canonical(system)},"tools":[{",".join(map(_written, tools))}]}}'


def offered_tools(snapshot: str) -> list[OfferedTool]:
    """Return the tools that a snapshot holds."""
    found = []
    for name, description, schema, *declared in json.loads(snapshot).get("tools", []):
        found.append(OfferedTool(name, description, schema, **(declared[0] if declared else {})))
    return found


def _written(tool: Tool) -> str:
    if (kept := _kept.get(tool)) is not None:
        return kept
    declared = {
        "title": tool.title,
        "preview": tool.preview,
        "risk": tool.risk.value,
        "idempotent": tool.idempotent,
        "always_asks": tool.always_asks,
    }
    _kept[tool] = text = canonical([wire_name(tool.name), tool.description, tool.schema, declared])
    return text
