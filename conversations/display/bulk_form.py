"""The form that decides several approvals at once: its rows, what is marked in them at first, the risks among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agents.engine.decisions import Ask, Decision
from conversations.approvals.many import MixedRisk
from conversations.display.gate import Card, called_risk

LEAVE = "leave"
"""What a form sends for an approval that is left for later. It is not a decision."""


@dataclass(frozen=True)
class BulkRow:
    """One action of the sheet. `picked` is the verdict that is marked, `reason` what was typed with it."""

    card: Card
    picked: str = LEAVE
    reason: str = ""
    problem: str = ""

    @property
    def open(self) -> bool:
        """Whether it gets a verdict here."""
        return self.card.may and self.card.decidable


@dataclass(frozen=True)
class BulkRisk:
    """The rows of one risk that can be approved together. `name` is the risk's, `words` what it is called."""

    name: str
    words: str
    count: int


def risks(cards: Iterable[Card]) -> list[BulkRisk]:
    """The risks of those that the reader can approve, in their order: calls of one are approved together (C14)."""
    found = Counter(card.row.risk for card in cards if _approvable(card))
    return [BulkRisk(name, called_risk(name), count) for name, count in found.items()]


def _approvable(card: Card) -> bool:
    return card.pending and card.allow and card.row.ask == Ask.APPROVE


def mixed(refused: MixedRisk) -> str:
    """What is said on a page where calls of several risks were marked to be approved."""
    words = [called_risk(name).lower() for name in refused.details["risks"]]
    return (
        f"Nothing was decided: what you marked to approve carries different risks ({', '.join(words)})."
        " Approve the actions of one risk, and leave the others for the next time."
    )


@dataclass(frozen=True)
class BulkMarks:
    """What is marked at first: `word` (approve, reject), to approve only what is of this `risk`."""

    word: str
    risk: str | None

    def of(self, card: Card) -> str:
        """A question, and what became of an interrupted call, are not answered with the others."""
        if self.word == Decision.APPROVE:
            return Decision.APPROVE if _approvable(card) and card.row.risk == self.risk else LEAVE
        return Decision.REJECT if self.word == Decision.REJECT and card.row.ask == Ask.APPROVE else LEAVE
