"""A call in words, and its complete input in its natural shape: a command as a command, the rest field by field."""

from __future__ import annotations

from dataclasses import dataclass

from agents.discovery import installed_tool
from agents.engine.ledger import JSON
from agents.engine.outputs import ToolOutput
from agents.engine.projection import render, shorten
from conversations.shown.faithful import first_line
from conversations.shown.value import ANY, kinds_of, told

RESULT_MOST = 12_000
"""Characters of a result on a page; of a longer one head and tail are shown. What is decided about is never cut."""


@dataclass(frozen=True)
class Field:
    """One field of an input. `block`: it has lines, and takes the whole width. `text` may be ""."""

    name: str
    text: str
    block: bool = False


@dataclass(frozen=True)
class Call:
    """What a call does, in words, and all of its input. `command` is there where the tool runs one."""

    title: str
    command: str | None
    fields: list[Field]

    @property
    def first_line(self) -> str:
        """How the input begins, for a list."""
        if self.command is not None:
            return first_line(self.command)
        said = next((field for field in self.fields if field.text), None)
        return first_line(f"{said.name}: {said.text}") if said else ""


def shown_call(tool: str, payload: dict[str, JSON]) -> Call:
    """The call of this tool with this input. A tool that is no longer there goes by its name."""
    known = installed_tool(tool)
    rest = dict(payload)
    command = None
    if known and known.preview == "command" and isinstance(rest.get("command"), str):
        command = rest.pop("command")
    kinds = kinds_of(known.input) if known else {}
    fields = [_field(name, told(value, kinds.get(name, ANY))) for name, value in rest.items()]
    return Call(known.title if known else tool, command, sorted(fields, key=lambda field: field.block))


def phrase(entry: ToolOutput) -> str:
    """What a call did, for the line that sums up several: "read export.py"."""
    tool = installed_tool(entry.tool)
    if tool is None or tool.says is None:
        return tool.title if tool else entry.tool
    try:
        return tool.says(tool.input.model_validate(entry.input))
    except Exception:  # noqa: BLE001 - an input that is not valid, or whatever the tool's own words raise
        return tool.title


def result_text(entry: ToolOutput) -> str:
    """What a call came to, as text; "" while it has come to nothing. A long result without its middle."""
    if entry.result.type == "error":
        return shorten(entry.result.error.get("message", ""), RESULT_MOST)
    return shorten(render(entry.result.output), RESULT_MOST) if entry.result.type == "success" else ""


def _field(name: str, text: str) -> Field:
    return Field(name, text, "\n" in text)
