"""Calls for display: a title in words, and the whole input in its natural form (command, diff, or fields)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agents.discovery import installed_policy, installed_tool
from agents.engine.agent.projection import render, shorten
from agents.engine.closing import HAD_BEGUN
from agents.engine.interfaces.provider import FINAL_ANSWER
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import Approval, ToolOutput
from agents.engine.tools.tool import Risk
from conversations.display.command_parts import PartRow, command_parts
from conversations.display.diff import Diff, diff
from conversations.display.faithful import first_line
from conversations.display.lookalikes import lookalikes
from conversations.display.mixed import mixed_words
from conversations.display.value import ANY, as_text, kind_of, kinds_in, kinds_of

RESULT_MOST = 12_000
"""Characters of a result on a page; a longer one shows its head and tail. Inputs to decide about are never cut."""


@dataclass(frozen=True)
class CallField:
    """One field of an input. `block`: it has several lines, and takes the whole width. `text` may be "".

    `language`: what the text is written in, if that is known.
    """

    name: str
    text: str
    block: bool = False
    language: str = ""


EFFECTS = {"command": "run", "program": "run", "diff": "write"}
"""What approving a call does, by its tool's kind of preview."""


@dataclass(frozen=True)
class DisplayedCall:
    """A call, with a title in words and all of its input. `command`: the command that the tool runs, if any.

    `argv`: the program that it runs and its arguments, if any.

    `change` is what it would change, and `given` the input fields behind that, which the change already expresses.
    `effect` is what approving it does, in a word; "" if there is no word for it.
    """

    title: str
    command: str | None
    fields: list[CallField]
    change: Change | None = None
    given: Sequence[CallField] = ()
    effect: str = ""
    argv: Sequence[str] | None = None

    @cached_property
    def parts(self) -> list[PartRow] | None:
        """The parts of a command of several, for reading only; None if it cannot be taken apart."""
        return command_parts(self.command) if self.command is not None else []

    @property
    def several(self) -> bool:
        """Whether a command is of several, as far as it can be taken apart."""
        return self.parts is not None and sum(1 for row in self.parts if row.number) > 1

    @property
    def line(self) -> str | None:
        """The program and its arguments as one would type them into a shell; None if the call runs none."""
        return shlex.join(self.argv) if self.argv is not None else None

    @property
    def diff(self) -> Diff | None:
        """The change, line by line."""
        return diff(self.change) if self.change else None

    @property
    def misleading(self) -> list[str]:
        """A sentence for each word that mixes scripts, or has characters that look like ASCII and are not."""
        fields = (text for field in (*self.fields, *self.given) for text in (field.name, field.text))
        change = (self.change.path, self.change.after) if self.change else ()
        texts = (self.title, self.command or "", *(self.argv or ()), *change, *fields)
        return [*mixed_words(texts), *lookalikes(texts)]

    @property
    def first_line(self) -> str:
        """The first line of the input, for a list."""
        if self.command is not None:
            return first_line(self.command)
        if self.line is not None:
            return first_line(self.line)
        if self.change:
            return first_line(self.change.path)
        shown = next((field for field in self.fields if field.text), None)
        return first_line(f"{shown.name}: {shown.text}") if shown else ""

    def repeats(self, words: str) -> bool:
        """Whether these words only repeat what is shown here anyway: a text argument, or "Run: ls" for a command."""
        path = self.change.path if self.change else None
        shown = {self.command, self.line, path, *(field.text for field in (*self.fields, *self.given))} - {None, ""}
        return bool(shown & {words, words.partition(": ")[2]})


def display_call(
    tool: str,
    payload: dict[str, JSON],
    change: Change | None = None,
    gate: Approval | None = None,
    schema: Mapping[str, Any] | None = None,
) -> DisplayedCall:
    """Return a call of this tool or policy with this input. Title and preview are those of its gate, if that has them.

    `schema`: that of the input, where it is not the one of the tool or policy.

    One that is no longer installed, and of which no gate says more, is shown by its name.
    """
    known = installed_tool(tool)
    title, preview = title_of(tool), known.preview if known else ""
    if gate and gate.title:
        title, preview = gate.title, gate.preview
    rest = dict(payload)
    command = None
    if preview == "command" and isinstance(rest.get("command"), str):
        command = rest.pop("command")
    argv = rest.pop("argv") if preview == "program" and _are_texts(rest.get("argv")) else None
    kinds = kinds_in(schema) if schema else kinds_of_input(tool)
    fields = _fields(rest, kinds)
    as_diff = change is not None and preview == "diff"
    given = [field for field in fields if as_diff and change and field.text not in (change.path, change.after)]
    effect = EFFECTS.get(preview, "")
    if as_diff and change and not change.after and gate and gate.risk == Risk.DESTRUCTIVE:
        effect = "delete"  # nothing that is shown is left
    return DisplayedCall(title, command, [] if as_diff else fields, change, given, effect, argv)


def _are_texts(value: JSON) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def kinds_of_input(name: str) -> Mapping[str, frozenset[str]]:
    """Return the kinds of values that each field of this tool's or policy's input accepts; {} if none is installed."""
    known = installed_tool(name) or installed_policy(name)
    return kinds_of(known.input) if known and isinstance(known.input, type) else {}


def title_of(name: str) -> str:
    """Return the title of this tool or policy; the name of one that is no longer installed."""
    if name == FINAL_ANSWER:
        return "Final answer"  # no app installs it: it comes with a turn whose answer has a form
    known = installed_tool(name) or installed_policy(name)
    return known.title if known else name


def call_of(entry: ToolOutput) -> DisplayedCall:
    """Return the call of this entry, with the change that a person was shown, or its input if that was unreadable."""
    if entry.raw is not None:
        return display_call(entry.tool, {"unreadable input": entry.raw})
    gate = entry.approval
    return display_call(entry.tool, entry.input, gate.change if gate else None, gate)


def phrase(entry: ToolOutput) -> str:
    """Return what a call did, for a line that sums up several calls: "read export.py"."""
    tool = installed_tool(entry.tool)
    if tool is None or tool.says is None:
        return call_of(entry).title
    try:
        return tool.says(tool.parse(entry.input))
    except Exception:  # noqa: BLE001 - the input is invalid, or the tool's own function raises
        return tool.title


def was_cut_off(entry: ToolOutput) -> bool:
    """Whether the call was stopped while it ran, by a person or a limit: some of it may have happened."""
    return entry.result.type == "error" and HAD_BEGUN in str(entry.result.error.get("message", ""))


def result_text(entry: ToolOutput) -> str:
    """Return the result of a call as text; "" while it has none. The middle of a long result is left out."""
    if entry.result.type == "error":
        return shorten(entry.result.error.get("message", ""), RESULT_MOST)
    return shorten(render(entry.result.output), RESULT_MOST) if entry.result.type == "success" else ""


def result_language(entry: ToolOutput) -> str:
    """Return the language of a call's result, or the name of the file that it is from; "" if its tool does not say."""
    tool = installed_tool(entry.tool)
    if entry.result.type != "success":
        return ""
    if not isinstance(entry.result.output, str):
        return "json"
    if tool is None or tool.language is None:
        return ""
    try:
        return tool.language(tool.parse(entry.input))
    except Exception:  # noqa: BLE001 - the input is invalid, or the tool's own function raises
        return ""


def displayed_result(output: JSON) -> tuple[str, list[CallField]]:
    """Return what a policy returned: as text, or an object as fields. The middle of a long text is left out."""
    if isinstance(output, dict):
        fields = _fields(output, {name: frozenset({kind_of(value)}) for name, value in output.items()})
        texts = {each.name: "none" if output[each.name] == [] else shorten(each.text, RESULT_MOST) for each in fields}
        return "", [replace(each, text=texts[each.name]) for each in fields]
    return shorten(as_text(output, frozenset({kind_of(output)})), RESULT_MOST), []


def _fields(payload: dict[str, JSON], kinds: Mapping[str, frozenset[str]]) -> list[CallField]:
    texts = {name: as_text(value, kinds.get(name, ANY)) for name, value in payload.items()}
    fields = [CallField(name, text, "\n" in text, _language(payload[name], text)) for name, text in texts.items()]
    places = {name: number for number, name in enumerate(kinds)}  # as its author declared them
    return sorted(fields, key=lambda field: (field.block, places.get(field.name, len(places))))


def _language(value: JSON, text: str) -> str:
    return "json" if not isinstance(value, str) and text.startswith(("[\n", "{\n")) else ""
