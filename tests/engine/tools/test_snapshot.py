"""Snapshots: what a round was offered can be read without its tools."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agents.engine.ledger import canonical
from agents.engine.outputs.change import Change
from agents.engine.tools.snapshot import OfferedTool, offered_tools, snapshot_text
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool, wire_name
from tests.engine.cast import Command, World


def test_a_snapshot_has_every_tool_in_its_place_by_its_wire_name_with_what_is_declared(world: World) -> None:
    tools = world.tools()
    found = {each.name: each for each in offered_tools(snapshot_text("Base.", reversed(tools)))}
    assert list(found) == [wire_name(tool.name) for tool in reversed(tools)]
    assert found["pay"] == OfferedTool("pay", "Pay.", tools[3].schema, "pay", "", "high", idempotent=False)
    assert {name for name, each in found.items() if each.idempotent} == {"fx_read", "touch", "count_add"}
    assert [name for name, each in found.items() if each.always_asks] == ["shell_run"], "`pay` asks by a rule"


def test_one_from_before_says_nothing_of_what_is_declared() -> None:
    (old,) = offered_tools(canonical({"system": "", "tools": [["a", "About a.", {"type": "object"}]]}))
    assert old == OfferedTool("a", "About a.", {"type": "object"})
    assert (old.title, old.idempotent, old.always_asks) == ("", False, False)
    assert offered_tools("{}") == []


class Commands(BaseModel):
    command: list[str]


class Path(BaseModel):
    path: str


def _edit(call: ToolCall[Command]) -> None: ...
def _many(call: ToolCall[Commands]) -> None: ...
def _other(call: ToolCall[Path]) -> None: ...


@pytest.mark.parametrize(
    ("made", "preview"),
    [
        (tool("a", risk=Risk.WRITE, change=lambda call: Change(path="", before="", after=""))(_edit), "diff"),
        (tool("a")(_edit), "command"),
        (tool("a")(_many), ""),
        (tool("a")(_other), ""),
    ],
)
def test_the_preview_of_a_tool_follows_from_what_it_declares(made: Tool, preview: str) -> None:
    assert made.preview == preview
