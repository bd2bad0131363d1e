"""The use of tools: how often each was called, how that ended, and by whom. Everything is counted from the record."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from conversations.models import GateState, Output, Prompt, Step, ToolUse
from conversations.usage.totals import MONTH

PEOPLE_MOST = 10
"""Maximum number of people who are named for a tool."""
UNDECIDED = (GateState.EXPIRED, GateState.CANCELLED)


@dataclass(frozen=True)
class Calls:
    """How many calls there were, and what became of them; those that have not ended are in `calls` alone.

    `failed`: the call ended with an error. `rejected`: a person did not allow it. `undecided`: nobody decided in time,
    or the turn was stopped before.
    """

    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    undecided: int = 0

    def __add__(self, other: Calls) -> Calls:
        """Return the sum of both."""
        return Calls(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class ToolCounts:
    """The calls of a tool: all on record, and those of turns that began within the last 30 days.

    `last_prompt`: the id of the newest turn that has one; 0 without any.
    """

    all: Calls = Calls()
    month: Calls = Calls()
    last_prompt: int = 0

    def __add__(self, other: ToolCounts) -> ToolCounts:
        """Return the sum of both."""
        last = max(self.last_prompt, other.last_prompt)
        return ToolCounts(self.all + other.all, self.month + other.month, last)


@dataclass(frozen=True)
class CallsOf:
    """How often a person's turns called a tool. `person` is None for turns that the site started by itself."""

    person: User | None
    all: int
    month: int


def counts_by_tool() -> dict[str, ToolCounts]:
    """Return the counts of every tool on record, by name: also of names that no installed tool has."""
    return _counts(ToolUse.objects.all())


def counts_of(tool: str) -> ToolCounts:
    """Return the counts of one tool."""
    return _counts(_calls(tool)).get(tool, ToolCounts())


def callers(tool: str) -> list[CallsOf]:
    """Return whose turns called the tool, who did so most often first; at most PEOPLE_MOST."""
    counted = (
        _calls(tool).values("prompt__asked_by").annotate(all=Count("prompt"), month=Count("prompt", filter=_recent()))
    )
    rows = list(counted.order_by("-all", "prompt__asked_by")[:PEOPLE_MOST])
    people = User.objects.in_bulk([row["prompt__asked_by"] for row in rows if row["prompt__asked_by"]])
    return [CallsOf(people.get(row["prompt__asked_by"]), row["all"], row["month"]) for row in rows]


def last_call(tool: str, counts: ToolCounts) -> Output | None:
    """Return the last call of the tool in the newest turn that has one, given its counts."""
    return _calls(tool).filter(prompt=counts.last_prompt).order_by("-position").first()


def called_at(call: Output) -> datetime | None:
    """Return when the call was asked for."""
    step = Step.objects.filter(conversation=call.conversation_id, seq=call.position)
    return step.values_list("time", flat=True).first()


def _calls(tool: str) -> QuerySet[ToolUse]:
    return ToolUse.objects.filter(tool=tool).order_by()


def _recent() -> Q:
    """Return the condition for calls in turns that began within the last 30 days.

    Turns are numbered as they begin, so the newest turn before that time is a border between numbers: it is found in as
    many steps as there were turns since then, and counting reads no other column.
    """
    before = Prompt.objects.filter(created_at__lt=timezone.now() - MONTH).order_by("-pk")
    return Q(prompt__gt=before.values_list("pk", flat=True).first() or 0)


def _counts(calls: QuerySet[ToolUse]) -> dict[str, ToolCounts]:
    found: dict[str, ToolCounts] = {}
    grouped = calls.order_by().values("tool", "result", "gate")
    for row in grouped.annotate(all=Count("prompt"), month=Count("prompt", filter=_recent()), last=Max("prompt")):
        ending = _ending(row["result"], row["gate"])
        found[row["tool"]] = found.get(row["tool"], ToolCounts()) + ToolCounts(
            Calls(row["all"], **{ending: row["all"]} if ending else {}),
            Calls(row["month"], **{ending: row["month"]} if ending else {}),
            row["last"],
        )
    return found


def _ending(result: str, gate: str) -> str:
    """Return which of the numbers in Calls counts a call with this result and gate; "" if it has not ended."""
    if gate == GateState.REJECTED:
        return "rejected"
    if gate in UNDECIDED:
        return "undecided"
    return {"success": "succeeded", "error": "failed"}.get(result, "")
