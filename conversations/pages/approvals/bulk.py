"""Several approvals, decided by one form: in the chat, in the inbox and in the admin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import QueryDict

from agents.engine.decisions import RUNS, Decision
from conversations.accounts.http import PersonRequest
from conversations.accounts.reauthentication import Entered, enter
from conversations.approvals.decisions import CHANGED, Conflict, DecisionRefused
from conversations.approvals.edits import AS_IT_IS
from conversations.approvals.many import DecisionOutcome, MixedRisk, WantedDecision, decide_many
from conversations.display.bulk_form import LEAVE, BulkRow, mixed_risk_message, reply_of, risks
from conversations.display.decision_form import LOOK, TEXT_MOST, check_typed, edit_form
from conversations.display.gate import Card, Opened
from conversations.display.question import QuestionForm

ROWS_CHANGED = "Nothing was decided yet: a row was added or removed."
FOR_LATER = "Your answer is marked for later. Mark it as the answer, or remove what you typed."


@dataclass(frozen=True)
class BulkPost:
    """A submitted form: the outcome of each decision, or the `problem` why none was made.

    `replies` are the forms of the questions in it, `edits` those of the calls that are edited, by output. `opens`: it
    was sent to open or close the form of an edit, and nothing was decided. `password` says why the password is asked
    for, or was not accepted: then nothing was decided either.
    """

    posted: QueryDict
    outcomes: Sequence[DecisionOutcome] = ()
    problem: str = ""
    replies: Mapping[int, QuestionForm] = field(default_factory=dict)
    edits: Mapping[int, Opened] = field(default_factory=dict)
    opens: bool = False
    password: str = ""

    @classmethod
    def decide(cls, request: PersonRequest, keys: Iterable[int], shown: Iterable[Card], via: str) -> BulkPost:
        """Make the decisions marked for these outputs, in this order. A refusal does not stop the others.

        `shown` are the cards of those that the person sees: what their forms hold depends on what they ask. Nothing is
        decided without the password that one of the decisions needs.
        """
        posted = request.POST
        cards = {card.row.pk: card for card in shown}
        replies = {key: form for key, card in cards.items() if (form := reply_of(card, posted))}
        edits = {key: opened for key, card in cards.items() if (opened := _edit_of(card, posted))}
        sent = cls(posted, replies=replies, edits=edits, opens=bool({"edit", "as_asked"} & posted.keys()))
        if sent.opens:
            return sent
        answers = [form.form for form in replies.values() if form.kind == "form"]
        if any(form.adds_rows for form in (*answers, *(each.form for each in edits.values() if each.form))):
            return replace(sent, problem=ROWS_CHANGED)
        wanted, wrong = [], []
        for key in keys:
            word, digest = posted.get(f"decision_{key}", LEAVE), posted.get(f"digest_{key}", "")
            try:
                if key in replies and word in (Decision.ANSWER, LEAVE):
                    wanted += _answers(cards[key], replies[key], word, digest)
                elif key in edits and word == Decision.APPROVE:
                    wanted.append(_edited(key, edits[key], digest))
                elif word != LEAVE:
                    why = reason(posted, key) if word == Decision.REJECT else ""
                    wanted.append(WantedDecision(key, word, digest, why))
            except DecisionRefused as refused:
                wrong.append(DecisionOutcome(key, refused=refused))
        asking = {key for key, card in cards.items() if card.password}
        needed = any(each.decision in RUNS and each.output_id in asking for each in wanted)
        entered = enter(request, posted.get("password", "")) if needed else Entered()
        if entered.problem:
            changed = [DecisionOutcome(key, refused=refused) for key, refused in _changed(wanted, cards)]
            return replace(sent, outcomes=[*wrong, *changed], password=entered.problem)
        try:
            made = decide_many(wanted, request.user, via, verified=entered.verified)
        except MixedRisk as several:
            return replace(sent, problem=mixed_risk_message(several, cards.values()))
        for outcome in made:
            if outcome.refused and (form := replies.get(outcome.output_id)):
                form.stale = outcome.refused.code == "changed"
                form.errors.update(outcome.refused.details if outcome.refused.code == "invalid_answer" else {})
        told = {each.output_id: each.refused for each in made if each.refused}
        edits = {key: _refused(each, told[key]) if key in told else each for key, each in edits.items()}
        return replace(sent, outcomes=[*wrong, *made], edits=edits)

    @property
    def refused(self) -> dict[int, str]:
        """Why decisions were refused, by output."""
        return {each.output_id: str(each.refused) for each in self.outcomes if each.refused}

    @property
    def done(self) -> bool:
        """Whether everything that was marked is decided."""
        return not (self.problem or self.refused or self.opens or self.password)

    @property
    def status(self) -> int:
        """The status: 400 if several risks were to be approved, or the password is missing; 409 if one was refused."""
        return 400 if self.problem or self.password else 409 if self.refused else 200

    def row(self, card: Card) -> BulkRow:
        """Return the row of this card, with what was marked and typed."""
        key = card.row.pk
        picked, problem = self.posted.get(f"decision_{key}", LEAVE), self.refused.get(key, "")
        if self.posted.get("edit") == str(key) and self.edits.get(key, Opened()).form:
            picked = Decision.APPROVE.value
        reply = self.replies.get(key)
        stale = reply and card.pending and (reply.question != card.question or reply.stale)
        unused = reply if reply and (stale or (not card.pending and reply.touched)) else None
        own = self.posted.get(f"reason_{key}", "")
        opened = self.edits.get(key, Opened())
        if card.pending and not card.may:  # there is no field for it any more
            opened = replace(opened, text=_lines(own))
        return BulkRow(card, picked, _lines(own), problem, reply_of(card) if stale else reply, unused, opened)

    def form(self, rows: Sequence[BulkRow], address: str) -> dict[str, Any]:
        """Return what the template of the form shows: these rows, sent to this address."""
        return {
            "rows": rows,
            "open": [row for row in rows if row.open],
            "address": address,
            "risks": risks(row.card for row in rows),
            "problem": self.problem,
            "refused": bool(self.problem or self.refused or self.password),
            "password": next((row.card.password for row in rows if row.open and row.card.password), ""),
            "password_problem": self.password,
            "reason": reason(self.posted),
            "reason_most": TEXT_MOST,
        }


def reason(posted: QueryDict, key: int | None = None) -> str:
    """Return the reason that was typed for this output; if none was, or without a key, the one for all of them."""
    own = posted.get(f"reason_{key}", "")
    return _lines(own if own.strip() else posted.get("reason", ""))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")[:TEXT_MOST]


def _changed(wanted: Iterable[WantedDecision], cards: Mapping[int, Card]) -> Iterator[tuple[int, Conflict]]:
    """Yield those of these calls that are no longer as they were shown: a form that is shown again has to say so."""
    for each in wanted:
        card = cards.get(each.output_id)
        if card and card.pending and each.digest != card.row.digest:
            yield card.row.pk, Conflict("changed", CHANGED, card.row)


def _answers(card: Card, reply: QuestionForm, word: str, digest: str) -> list[WantedDecision]:
    """Return the answer that was typed; none if the question is left for later. Raises DecisionRefused."""
    if word == LEAVE:
        if card.pending and reply.touched:  # without a script, nothing marks what is typed
            raise DecisionRefused("invalid_answer", FOR_LATER)
        return []
    answer = reply.answer()
    check_typed(card, reply, digest)
    return [WantedDecision(card.row.pk, word, digest, answer=answer)]


def _edit_of(card: Card, posted: QueryDict) -> Opened | None:
    """Return the form of an edit that is open, or is to be opened; None for a call that stays as it was asked."""
    key = str(card.row.pk)
    opens = posted.get("edit") == key
    if posted.get("as_asked") == key or not (opens or f"edited_{key}" in posted):
        return None
    form = edit_form(card, None if opens else posted, f"{key}-")
    return Opened("edit", form, seen=posted.get(f"seen_{key}", "")) if form else Opened(problem=AS_IT_IS)


def _edited(key: int, opened: Opened, digest: str) -> WantedDecision:
    """Return the approval of what was typed. Raises DecisionRefused."""
    if opened.form is None:
        raise DecisionRefused("not_editable", f"Nothing was decided. {AS_IT_IS}")
    payload = opened.form.payload()
    if opened.form.errors:
        raise DecisionRefused("invalid_input", LOOK, opened.form.errors)
    return WantedDecision(key, Decision.APPROVE, digest, input=payload, seen=opened.seen)


def _refused(opened: Opened, refused: DecisionRefused) -> Opened:
    """Return the form of an edit with what was wrong with it, or with the facts that now hold of the call."""
    if refused.code == "facts_changed":
        return opened.with_facts(refused.details)
    if refused.code == "invalid_input" and opened.form:
        opened.form.errors = refused.details
    return replace(opened, seen="")
