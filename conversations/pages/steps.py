"""Steps: calls that nobody had to decide, and the model's thoughts between them, folded into one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.outputs import Output, ReasoningOutput, RetryOutput, ToolOutput
from conversations.shown.call import Call, phrase, result_text, shown_call
from conversations.shown.when import took

SAID_MOST = 4
"""Calls that the closed line names."""


@dataclass(frozen=True)
class Row:
    """One row. `mark` is how it stands: ok, bad, run, wait, or note for what is no call."""

    mark: str
    said: str
    tool: str = ""
    took: str = ""
    call: Call | None = None
    got: str = ""


@dataclass(frozen=True)
class Steps:
    """Entries that stand side by side, as rows below one line."""

    entries: Sequence[Output]

    @property
    def rows(self) -> list[Row]:
        """One for each entry."""
        return [_row(entry) for entry in self.entries]

    @property
    def working(self) -> bool:
        """Whether one of the calls runs."""
        return any(call.result.type == "running" for call in self._calls)

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(call.result.type == "error" for call in self._calls)

    @property
    def line(self) -> str:
        """What the closed line says: how many, and what they did."""
        calls = self._calls
        if not calls:
            return "Reasoning" if isinstance(self.entries[0], ReasoningOutput) else "An answer that could not be read"
        named = ", ".join(phrase(call) for call in calls[:SAID_MOST])
        more = f" and {len(calls) - SAID_MOST} more" if len(calls) > SAID_MOST else ""
        return f"{len(calls)} {'step' if len(calls) == 1 else 'steps'}: {named}{more}{self._failures}"

    @property
    def _failures(self) -> str:
        if not self.failed:
            return ""
        return ", which failed" if len(self._calls) == 1 else f"; {self.failed} failed"

    @property
    def _calls(self) -> list[ToolOutput]:
        return [entry for entry in self.entries if isinstance(entry, ToolOutput)]


MARKS = {"success": "ok", "error": "bad", "running": "run"}


def _row(entry: Output) -> Row:
    if isinstance(entry, ToolOutput):
        call = shown_call(entry.tool, entry.input if entry.raw is None else {"unreadable input": entry.raw})
        mark = MARKS.get(entry.result.type, "wait")
        time = took(entry.started_at, entry.ended_at)
        return Row(mark, phrase(entry), entry.tool, time, call, result_text(entry))
    if isinstance(entry, ReasoningOutput):
        return Row("note", "Reasoning", got=entry.text)
    if isinstance(entry, RetryOutput):
        return Row("bad", f"An answer that could not be read: {entry.message}", got=entry.raw)
    return Row("note", entry.type)
