"""The form that decides several approvals at once: its rows, their initial marks, and the risks among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agents.engine.decisions import Ask, Decision
from conversations.approvals.many import MixedRisk
from conversations.display.gate import Card, Opened
from conversations.display.question import QuestionForm, asked_again
from conversations.display.risk import risk_words

LEAVE = "leave"
"""What a form sends for an approval that is left for later. It is not a decision."""


@dataclass(frozen=True)
class BulkRow:
    """One row of the form. `picked` is the decision that is marked, `reason` what was typed with it.

    `reply` is the form of a question's answer, `unused` what was typed into one that came too late. `opened` has the
    form of an edit, if that is open.
    """

    card: Card
    picked: str = LEAVE
    reason: str = ""
    problem: str = ""
    reply: QuestionForm | None = None
    unused: QuestionForm | None = None
    opened: Opened = field(default_factory=Opened)

    @property
    def open(self) -> bool:
        """Whether it can be decided here."""
        return self.card.may and (self.card.decidable or self.asks)

    @property
    def asks(self) -> bool:
        """Whether it is a question that the reader may answer."""
        return self.card.pending and self.card.question is not None and self.card.allow


@dataclass(frozen=True)
class BulkRisk:
    """The rows of one risk, which can be approved together. `words` are those of their badges."""

    name: str
    words: str
    count: int


def risks(cards: Iterable[Card]) -> list[BulkRisk]:
    """Return the risks that the reader can approve, in order: only calls of one risk are approved together (C14)."""
    found = defaultdict[str, list[str]](list)
    for card in cards:
        if _approvable(card):
            found[card.row.risk].append(risk_words(card.row.risk, card.facts))
    return [BulkRisk(name, ", ".join(dict.fromkeys(words)), len(words)) for name, words in found.items()]


def _approvable(card: Card) -> bool:
    return card.pending and card.allow and card.row.ask == Ask.APPROVE


def mixed_risk_message(refused: MixedRisk, cards: Iterable[Card]) -> str:
    """Return the error for calls of several risks, among these cards, that were marked to be approved together."""
    marked = {pk for pks in refused.details["risks"].values() for pk in pks}
    words = dict.fromkeys(risk_words(card.row.risk, card.facts).lower() for card in cards if card.row.pk in marked)
    return (
        f"Nothing was decided: the actions you marked to approve have different risks ({', '.join(words)})."
        " Approve the actions of one risk first, then the others."
    )


def marked_rows(cards: Iterable[Card], word: str, risk: str | None) -> list[BulkRow]:
    """Return the rows of a new form, each marked as `word` says (approve, reject), to approve only those of this risk.

    Questions and interrupted calls are marked by nobody but the reader.
    """
    rows = []
    for card in cards:
        approve = word == Decision.APPROVE and _approvable(card) and card.row.risk == risk
        reject = word == Decision.REJECT and card.row.ask == Ask.APPROVE
        rows.append(BulkRow(card, word if approve or reject else LEAVE, reply=reply_of(card)))
    return rows


def reply_of(card: Card, posted: Mapping[str, str] | None = None) -> QuestionForm | None:
    """Return the form of a question's answer, as a part of the form of all; with what was typed into it."""
    if card.question is None:
        return None
    prefix = f"{card.row.pk}-"
    return asked_again(card.question, prefix) if posted is None else QuestionForm(card.question, posted, prefix)
