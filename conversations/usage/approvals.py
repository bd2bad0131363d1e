"""Figures of approvals: what became of what people were asked, who decided it how fast, by tool and by person.

Each call counts once, with the last question about it. Everything is read from the outputs, in one query.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil

from django.db.models import Case, CharField, Value, When
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from agents.discovery import installed_tool
from agents.engine.actors import Actor, Kind
from agents.engine.decisions import Ask
from agents.engine.execution.gates import ANOTHER
from agents.engine.tools.tool import SANDBOXED
from conversations.models import GateState, Output

MANY = 20
"""So many approvals say something of a habit."""
NEARLY_ALL = 0.95
QUICK_SECONDS = 3
"""Nobody reads a call in less."""
BY_PEOPLE = ("unchanged", "edited", "rejected", "answered")


@dataclass
class Tally:
    """What became of a number of questions.

    `counts` are by what became of one: approved `unchanged` or `edited`, `rejected`, or `answered` (also what became of
    an interrupted call); `granted` by a grant or a rule; `expired`, `stopped` with its turn, or still `waiting`.
    `seconds`: how long people took from the question to the decision. `four_eyes`: some were for another to approve.
    `grantable`: whether calls of the tool can be granted.
    """

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    four_eyes: bool = False
    grantable: bool = True

    def add(self, became: str, seconds: float | None, four_eyes: bool) -> None:
        """Count a question, and how long people took to decide it; None if they did not."""
        self.counts[became] += 1
        self.four_eyes |= four_eyes
        if seconds is not None:
            self.seconds.append(seconds)

    @property
    def asked(self) -> int:
        """How many questions there were."""
        return self.counts.total()

    @property
    def decided(self) -> int:
        """How many of them people decided."""
        return len(self.seconds)

    @property
    def median(self) -> float | None:
        """In how many seconds people decided half of them; None without any."""
        return self._within(0.5)

    @property
    def slow(self) -> float | None:
        """In how many seconds people decided 95 of 100; None without any."""
        return self._within(0.95)

    @property
    def grant(self) -> str:
        """Where a grant could decide in place of people, in a sentence; else ""."""
        unchanged = self.counts["unchanged"]
        if not self.grantable or unchanged < MANY or self.four_eyes or self.counts["edited"] or self.counts["rejected"]:
            return ""
        return f"All {unchanged:,} were approved unchanged: a grant could cover them."

    @property
    def quick(self) -> str:
        """Whether nearly all was approved unchanged and faster than anybody reads, in a sentence; else ""."""
        unchanged, quick = self.counts["unchanged"], sum(each <= QUICK_SECONDS for each in self.seconds)
        if unchanged < MANY or min(unchanged, quick) < NEARLY_ALL * self.decided:
            return ""
        return f"Decided {quick:,} of {self.decided:,} within {QUICK_SECONDS} seconds."

    def _within(self, share: float) -> float | None:
        return sorted(self.seconds)[ceil(share * len(self.seconds)) - 1] if self.seconds else None


@dataclass(frozen=True)
class Figures:
    """The figures of a period: of all questions, by the name of the tool, and by the actor who decided."""

    all: Tally
    tools: dict[str, Tally]
    people: dict[str, Tally]


def figures(days: int) -> Figures:
    """Return what became of what was asked within so many days; what was asked and decided most comes first."""
    all, tools, people = Tally(), defaultdict[str, Tally](Tally), defaultdict[str, Tally](Tally)
    # The key of the call itself: its input may have one of the same name, with another position before it, or none.
    proposed = Concat(Value(',"position":'), Cast("position", CharField()), Value(',"proposed":{'))
    edited = Case(When(gate=GateState.APPROVED, data__contains=proposed, then=True), default=False)
    asked = Output.objects.gates().filter(asked_at__gte=timezone.now() - timedelta(days=days)).order_by()
    rows = asked.annotate(edited=edited).values_list(
        "tool", "gate", "ask", "edited", "who", "decided_by", "asked_at", "decided_at"
    )
    for tool, gate, ask, changed, who, by, asked_at, decided_at in rows.iterator():
        became = _became(gate, ask, by, changed)
        seconds = _seconds(asked_at, decided_at) if became in BY_PEOPLE else None
        for tally in (all, tools[tool], *((people[by],) if became in BY_PEOPLE else ())):
            tally.add(became, seconds, who == ANOTHER)
    for name, tally in tools.items():
        known = installed_tool(name)
        tally.grantable = known is not None and known.grants([SANDBOXED]) is not None
    return Figures(all, _largest_first(tools), _largest_first(people))


def _became(gate: str, ask: str, by: str, edited: bool) -> str:
    """Return what became of a question, in one of the words of `Tally`."""
    if gate in (GateState.PENDING, GateState.EXPIRED, GateState.CANCELLED):
        return {GateState.PENDING: "waiting", GateState.EXPIRED: "expired"}.get(GateState(gate), "stopped")
    if Actor.parse(by).kind in (Kind.RULE, Kind.GRANT):
        return "granted"
    if gate == GateState.REJECTED:
        return "rejected"
    if gate == GateState.ANSWERED or ask != Ask.APPROVE:
        return "answered"
    return "edited" if edited else "unchanged"


def _seconds(asked_at: datetime | None, decided_at: datetime | None) -> float | None:
    return (decided_at - asked_at).total_seconds() if asked_at and decided_at else None


def _largest_first(tallies: dict[str, Tally]) -> dict[str, Tally]:
    return dict(sorted(tallies.items(), key=lambda each: (-each[1].asked, each[0])))
