"""A call in words, and all it asks for in its natural shape: a command, a diff of what changes, the rest by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.discovery import installed_tool
from agents.engine.agent.projection import render, shorten
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import ToolOutput
from conversations.display.diff import Diff, diff
from conversations.display.faithful import first_line
from conversations.display.value import ANY, kinds_of, told

RESULT_MOST = 12_000
"""Characters of a result on a page; of a longer one head and tail are shown. What is decided about is never cut."""


@dataclass(frozen=True)
class CallField:
    """One field of an input. `block`: it has lines, and takes the whole width. `text` may be ""."""

    name: str
    text: str
    block: bool = False


EFFECTS = {"command": "run", "diff": "write"}
"""What approving a call does, by the shape of its input."""


@dataclass(frozen=True)
class DisplayedCall:
    """What a call does, in words, and all of its input. `command` is there where the tool runs one.

    `change` is what it would change. `given` is what the agent gave to say so: the change tells all of it, in its way.
    `effect` is what approving it does, in a word; "" where there is none for it.
    """

    title: str
    command: str | None
    fields: list[CallField]
    change: Change | None = None
    given: Sequence[CallField] = ()
    effect: str = ""

    @property
    def diff(self) -> Diff | None:
        """What it would change, line by line."""
        return diff(self.change) if self.change else None

    @property
    def first_line(self) -> str:
        """How the input begins, for a list."""
        if self.command is not None:
            return first_line(self.command)
        if self.change:
            return first_line(self.change.path)
        said = next((field for field in self.fields if field.text), None)
        return first_line(f"{said.name}: {said.text}") if said else ""

    def repeats(self, words: str) -> bool:
        """Whether these words say only what stands here anyway: "Run: ls", of the command `ls`."""
        said = words.partition(": ")[2]
        path = self.change.path if self.change else None
        return said in {self.command, path, *(field.text for field in (*self.fields, *self.given))} - {None, ""}


def shown_call(tool: str, payload: dict[str, JSON], change: Change | None = None) -> DisplayedCall:
    """The call of this tool with this input. A tool that is no longer there goes by its name."""
    known = installed_tool(tool)
    preview = known.preview if known else ""
    rest = dict(payload)
    command = None
    if preview == "command" and isinstance(rest.get("command"), str):
        command = rest.pop("command")
    fields = _fields(rest, kinds_of(known.input) if known else {})
    told = change is not None and preview == "diff"
    given = [field for field in fields if told and change and field.text not in (change.path, change.after)]
    title = known.title if known else tool
    return DisplayedCall(title, command, [] if told else fields, change, given, EFFECTS.get(preview, ""))


def call_of(entry: ToolOutput) -> DisplayedCall:
    """The call of this entry: with what a person was shown that it would change, or the words nobody could read."""
    if entry.raw is not None:
        return shown_call(entry.tool, {"unreadable input": entry.raw})
    return shown_call(entry.tool, entry.input, entry.approval.change if entry.approval else None)


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


def _fields(payload: dict[str, JSON], kinds: Mapping[str, frozenset[str]]) -> list[CallField]:
    texts = {name: told(value, kinds.get(name, ANY)) for name, value in payload.items()}
    fields = [CallField(name, text, "\n" in text) for name, text in texts.items()]
    return sorted(fields, key=lambda field: field.block)
