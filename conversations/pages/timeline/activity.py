"""Activity: calls that nobody had to decide, and the model's thoughts between them, collapsed into one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings

from agents.engine.outputs.kinds import Output, ReasoningOutput, RetryOutput, ToolOutput
from agents.providers.json.answer import for_people
from conversations.display.call import DisplayedCall, call_of, phrase, result_text
from conversations.display.when import took
from conversations.pages.timeline.drafts import RunningCommand
from conversations.pages.versions import version

SAID_MOST = 4
"""Calls that the closed line names."""
THINKING, UNREADABLE = "Thinking", "The model's answer could not be read"
MARKS = {"success": "ok", "error": "bad", "running": "run"}


class ActivityEntry(NamedTuple):
    """An entry of an activity, the version in which it stands, and what it has said if it runs.

    `tries`: of an answer that could not be read, the how many-eth in a row it was.
    """

    entry: Output
    version: str
    running: RunningCommand | None
    tries: int = 0


@dataclass(frozen=True)
class ActivityRow:
    """One row. `mark` is how it stands: ok, bad, run, wait, or note for what is no call."""

    id: str
    version: str
    entry: Output
    running: RunningCommand | None
    tries: int = 0

    @property
    def mark(self) -> str:
        """How it stands."""
        if isinstance(self.entry, ToolOutput):
            return MARKS.get(self.entry.result.type, "wait")
        return "bad" if isinstance(self.entry, RetryOutput) else "note"

    @property
    def said(self) -> str:
        """What it did, or is doing."""
        if isinstance(self.entry, ToolOutput):
            return phrase(self.entry)
        if isinstance(self.entry, RetryOutput):
            most = max(settings.AGENTSITE_PARSE_FAILURES, self.tries)
            return f"{UNREADABLE} (try {self.tries} of {most})"
        return THINKING

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.entry.tool if isinstance(self.entry, ToolOutput) else ""

    @property
    def took(self) -> str:
        """How long it took."""
        return took(self.entry.started_at, self.entry.ended_at) if isinstance(self.entry, ToolOutput) else ""

    @property
    def call(self) -> DisplayedCall | None:
        """What was asked."""
        return call_of(self.entry) if isinstance(self.entry, ToolOutput) else None

    @property
    def got(self) -> str:
        """What it came to, or what was wrong with an answer: never that answer, in which calls may stand."""
        if isinstance(self.entry, ToolOutput):
            return result_text(self.entry)
        return for_people(self.entry.message) if isinstance(self.entry, RetryOutput) else ""

    @property
    def thought(self) -> str:
        """What was thought, as Markdown."""
        return self.entry.text if isinstance(self.entry, ReasoningOutput) else ""


@dataclass(frozen=True)
class Activity:
    """Entries that stand side by side, as rows below one line. `working`: the turn is at them."""

    id: str
    entries: Sequence[ActivityEntry]
    working: bool = False

    @property
    def rows(self) -> list[ActivityRow]:
        """One for each entry."""
        return [
            ActivityRow(f"{self.id}-{one.entry.position}", one.version, one.entry, one.running, one.tries)
            for one in self.entries
        ]

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """The ids and versions of the closed line and of the rows."""
        yield f"{self.id}-line", self.line_version
        for one in self.entries:
            yield f"{self.id}-{one.entry.position}", one.version

    @property
    def version(self) -> str:
        """That of all of it."""
        return version(*self.parts)

    @property
    def line_version(self) -> str:
        """That of the closed line."""
        return version(self.line, self.running, self.failed, self.working, self.since, self.took)

    @property
    def running(self) -> bool:
        """Whether one of the calls runs."""
        return any(call.result.type == "running" for call in self._calls)

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(call.result.type == "error" for call in self._calls)

    @property
    def unread(self) -> bool:
        """Whether all that is here is answers that could not be read."""
        return not self._calls and any(isinstance(one.entry, RetryOutput) for one in self.entries)

    @property
    def since(self) -> str:
        """When the first of them was asked for, as ISO time."""
        return self.entries[0].entry.created_at

    @property
    def took(self) -> str:
        """How long they took together; "" where it is not known of all: what only reads records no start."""
        calls = self._calls
        if not calls or not all(call.started_at and call.ended_at for call in calls):
            return ""
        return took(min(call.started_at for call in calls), max(call.ended_at for call in calls))

    @property
    def line(self) -> str:
        """What the closed line says: how many, and what they did."""
        calls = self._calls
        counted = f"{len(calls)} {'step' if len(calls) == 1 else 'steps'}"
        if self.working:
            return f"Agent is working\u2026 {counted}" if calls else "Agent is working\u2026"
        if not calls:
            return UNREADABLE if self.unread else THINKING
        named = ", ".join(phrase(call) for call in calls[:SAID_MOST])
        more = f" and {len(calls) - SAID_MOST} more" if len(calls) > SAID_MOST else ""
        return f"{counted}: {named}{more}{self._failures}"

    @property
    def _failures(self) -> str:
        if not self.failed:
            return ""
        return ", which failed" if len(self._calls) == 1 else f"; {self.failed} failed"

    @property
    def _calls(self) -> list[ToolOutput]:
        return [one.entry for one in self.entries if isinstance(one.entry, ToolOutput)]
