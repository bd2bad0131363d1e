"""Activity: calls that needed no approval, and the reasoning between them, collapsed into one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.outputs.kinds import Output, ReasoningOutput, RetryOutput, ToolOutput
from agents.providers.json.answer import for_people
from conversations.display.call import call_of, phrase, result_language, result_text, was_cut_off
from conversations.display.html_cache import cached_html
from conversations.display.when import took
from conversations.pages.timeline.drafts import RunningCommand
from conversations.pages.versions import version

SAID_MOST = 4
"""How many calls the collapsed line names."""
THINKING, UNREADABLE = "Thinking", "The model's answer could not be read"
MARKS = {"success": "ok", "error": "bad", "running": "run"}


@dataclass(frozen=True)
class ActivityRow:
    """One entry of an activity as a row, with the output so far if it is running.

    `tries`: for an answer that could not be read, its number in a row of such answers, from 1.
    """

    id: str
    version: str
    entry: Output
    running: RunningCommand | None
    tries: int = 0

    @property
    def html(self) -> SafeString:
        """The row as HTML, from the cache unless its call is running."""
        if self.running:
            return self._render()
        return cached_html(self._render, "row", self.id, self.version, self.tries, self.entry.model_dump())

    def _render(self) -> SafeString:
        return render_to_string("conversations/timeline/row.html", {"row": self, **self._shown()})

    def _shown(self) -> dict[str, object]:
        """Return what the row shows, by the kind of its entry.

        Of an answer that could not be read, what was wrong with it. Never the answer itself: it may contain calls.
        """
        match self.entry:
            case ToolOutput() as call:
                return {
                    "mark": MARKS.get(call.result.type, "wait"),
                    "said": phrase(call),
                    "tool": call.tool,
                    "took": took(call.started_at, call.ended_at),
                    "call": call_of(call),
                    "got": result_text(call),
                    "language": result_language(call),
                }
            case RetryOutput() as answer:
                most = max(settings.AGENTSITE_PARSE_FAILURES, self.tries)
                said = f"{UNREADABLE} (try {self.tries} of {most})"
                return {"mark": "bad", "said": said, "got": for_people(answer.message), "language": ""}
            case ReasoningOutput() as reasoning:
                return {"mark": "note", "said": THINKING, "thought": reasoning.text}
        raise TypeError(f"an activity has no {self.entry.type}")


@dataclass(frozen=True)
class Activity:
    """Neighbouring entries, as rows below one line. `working`: the turn is working on them now."""

    id: str
    rows: Sequence[ActivityRow]
    working: bool = False

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """The ids and versions of the collapsed line and of the rows."""
        yield f"{self.id}-line", self.line_version
        for row in self.rows:
            yield row.id, row.version

    @property
    def version(self) -> str:
        """The version of the whole activity."""
        return version(*self.parts)

    @property
    def line_version(self) -> str:
        """The version of the collapsed line."""
        return version(self.line, self.running, self.failed, self.working, self.since, self.took)

    @property
    def running(self) -> bool:
        """Whether one of the calls is running."""
        return any(call.result.type == "running" for call in self._calls)

    @property
    def failed(self) -> int:
        """The number of calls that failed."""
        return sum(call.result.type == "error" for call in self._calls)

    @property
    def unread(self) -> bool:
        """Whether the activity consists only of answers that could not be read."""
        return not self._calls and any(isinstance(row.entry, RetryOutput) for row in self.rows)

    @property
    def since(self) -> str:
        """When the first entry was created, as ISO time."""
        return self.rows[0].entry.created_at

    @property
    def took(self) -> str:
        """How long the calls took together; "" if that is not known of all: reading records no start."""
        calls = self._calls
        if not calls or not all(call.started_at and call.ended_at for call in calls):
            return ""
        return took(min(call.started_at for call in calls), max(call.ended_at for call in calls))

    @property
    def line(self) -> str:
        """The text of the collapsed line: how many calls, and what they did."""
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
        if any(map(was_cut_off, self._calls)):
            return ", stopped while it ran: part of it may already have been done"
        return ", which failed" if len(self._calls) == 1 else f"; {self.failed} failed"

    @property
    def _calls(self) -> list[ToolOutput]:
        return [row.entry for row in self.rows if isinstance(row.entry, ToolOutput)]
