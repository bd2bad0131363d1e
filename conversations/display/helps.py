"""Helps: what stands on a waiting card besides the call, so that whoever decides need not look elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import prefetch_related_objects

from agents.engine.outputs.kinds import ToolOutput
from agents.engine.root import AGENT
from conversations.accounts.names import display_name
from conversations.display.call import title_of
from conversations.display.earlier import EarlierCalls, earlier_calls
from conversations.models import Output, Prompt
from conversations.models.prompt import Origin
from conversations.usage.totals import dollars

LINE_MOST = 44
"""Characters that stand in one line on a phone: a longer text can be opened."""
WAYS = {Origin.API: " over the API", Origin.COMMAND: " on the command line"}
"""How somebody asked, if not on a page."""


@dataclass(frozen=True)
class TurnStart:
    """What a turn came of: who started it, in words, and the message; "" if there is none."""

    who: str
    message: str

    @classmethod
    def of(cls, prompt: Prompt, reader: User | AnonymousUser) -> TurnStart:
        """Return what this turn came of, as this reader is told."""
        origin = Origin(prompt.origin)
        program = "" if prompt.policy == AGENT else title_of(prompt.policy)
        if prompt.starter is None:
            what = f"“{program}” was started" if program else "Started"
            return cls(f"{what} by {origin.label.lower()}", prompt.input or prompt.reminder or "")
        name = "You" if prompt.starter == reader else display_name(prompt.starter)
        did = f"started “{program}”" if program else "asked"
        return cls(f"{name} {did}{WAYS.get(origin, '')}", prompt.input or "")


@dataclass(frozen=True)
class Helps:
    """What helps to decide about a call that waits. `earlier`: what became of calls like it.

    `rounds`, `tokens` and `cost` are those of its turn so far, from the second round on: before that they say nothing
    that is not true of any card. `cost` is "" if no price is known. `undoable`: what its tool says of undoing it.
    """

    earlier: EarlierCalls = field(default_factory=EarlierCalls)
    rounds: int = 0
    tokens: int = 0
    cost: str = ""
    undoable: str = ""

    @property
    def count(self) -> int:
        """How many lines there are."""
        told = (self.earlier.last, self.earlier.counted, self.rounds, self.undoable)
        return sum(1 for each in told if each)


def helps_of(asked: Sequence[tuple[Output, ToolOutput]], reader: User | AnonymousUser) -> dict[int, Helps]:
    """Return what helps to decide about these outputs with their entries, by output.

    The number of queries does not depend on how many there are. The turns are loaded with whoever asked for them.
    """
    prefetch_related_objects([row for row, _ in asked], "prompt__asked_by")
    earlier = earlier_calls(asked, reader)
    return {
        row.pk: Helps(
            earlier.get(row.pk, EarlierCalls()),
            row.prompt.rounds if row.prompt.rounds > 1 else 0,
            row.prompt.input_tokens + row.prompt.output_tokens,
            _cost(row.prompt),
            entry.approval.undoable if entry.approval else "",
        )
        for row, entry in asked
    }


def _cost(prompt: Prompt) -> str:
    if not prompt.cost_nano_usd:
        return ""
    return f"{'at least ' if prompt.unpriced else ''}{dollars(prompt.cost_nano_usd)}"
