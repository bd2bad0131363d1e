"""The forms of an approval card, and deciding by what they submit: the same in the chat and in the admin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.contrib.auth.models import User

from agents.engine.decisions import Decision
from agents.engine.ledger import JSON
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.edits import AS_IT_IS, edit_check
from conversations.display.gate import Card, Opened
from conversations.display.question import QuestionForm
from conversations.display.schema_form import SchemaForm
from conversations.models import Output

TEXT_MOST = 4_000
"""Maximum length of a reason, in characters."""

LOOK = "Nothing was decided. Check the marked fields."


class RowsChanged(DecisionRefused):
    """A form that was sent only to add or remove a row in it: it is shown again, and nothing was decided."""

    def __init__(self) -> None:
        super().__init__("rows_changed", "Nothing was decided: a row was added or removed.")


def open_card(card: Card, state: str) -> None:
    """Open a form on a card: edit or reject. Anything else, or a form that is not allowed, leaves the card plain."""
    if state == "edit" and card.editable and card.allow:
        form = edit_form(card)
        card.opened = Opened("edit", form) if form else Opened(problem=AS_IT_IS)
    elif state == Decision.REJECT and card.decidable and card.may:
        card.opened = Opened(Decision.REJECT)


def open_asked(cards: Iterable[Card], asked: Mapping[str, str]) -> None:
    """Open the form that an address asks for, without JavaScript: `?edit=<output>` or `?reject=<output>`."""
    for card in cards:
        for state in ("edit", Decision.REJECT):
            if asked.get(state) == str(card.row.pk):
                open_card(card, state)


def edit_form(card: Card, posted: Mapping[str, str] | None = None) -> SchemaForm | None:
    """Return the form of this call's input; None if it cannot be edited."""
    shape = edit_check(card.row)
    if shape is None:
        return None
    given: dict[str, JSON] = shape.asked.get("input", {})
    code = frozenset(
        given if card.call.effect in ("write", "delete") else {"command"} if card.call.effect == "run" else ()
    )
    return SchemaForm(shape.schema, given, posted, code)


def decide_posted(card: Card, by: User, posted: Mapping[str, str], via: str) -> Output:
    """Decide with a submitted form. Raises what `decide` raises; the card's form then shows what was typed."""
    decision, digest = posted.get("decision", ""), posted.get("digest", "")
    if "edited" in posted and decision == Decision.APPROVE:
        return _approve_edited(card, by, posted, via)
    if decision == Decision.ANSWER and card.question:
        return _answered(card, by, QuestionForm(card.question, posted), digest, via)
    reason = _typed(posted, "reason") if decision == Decision.REJECT else ""
    try:
        return decide(card.row.pk, by, decision, digest=digest, via=via, reason=reason)
    except DecisionRefused as refused:
        state = Decision.REJECT if decision == Decision.REJECT and card.decidable else "plain"
        card.opened = Opened(state, text=reason, problem=str(refused))
        raise


def _answered(card: Card, by: User, form: QuestionForm, digest: str, via: str) -> Output:
    """Answer a question with what was typed into its form."""
    if form.kind == "form" and form.form.adds_rows:
        card.opened = Opened(reply=form)
        raise RowsChanged
    answer = form.answer()
    try:
        check_typed(card, form, digest)
        return decide(card.row.pk, by, Decision.ANSWER, digest=digest, via=via, answer=answer)
    except DecisionRefused as refused:
        problem, form.stale = str(refused), refused.code == "changed"
        if refused.code == "invalid_answer":
            form.errors.update(refused.details)
            problem = LOOK if form.kind == "form" else ""  # of a single field, the field says it
        card.opened = Opened(reply=form, problem=problem)
        raise


def check_typed(card: Card, form: QuestionForm, digest: str) -> None:
    """Raise DecisionRefused if what was typed is no answer. If something else is asked since, `decide` says so."""
    if form.errors and card.pending and digest == card.row.digest:
        raise DecisionRefused("invalid_answer", LOOK, form.errors)


def _approve_edited(card: Card, by: User, posted: Mapping[str, str], via: str) -> Output:
    form = edit_form(card, posted)
    if form is None:
        why = f"Nothing was decided. {AS_IT_IS}"
        card.opened = Opened(problem=why)
        raise DecisionRefused("not_editable", why)
    if form.adds_rows:
        card.opened = Opened("edit", form)
        raise RowsChanged
    payload = form.payload()
    if form.errors:
        card.opened = Opened("edit", form, problem=LOOK)
        raise DecisionRefused("invalid_input", LOOK, form.errors)
    try:
        return _as_seen(card, by, payload, posted, via)
    except DecisionRefused as refused:
        card.opened = Opened("edit", form, problem=str(refused))
        if refused.code == "invalid_input":
            form.errors = refused.details
            card.opened = replace(card.opened, problem=LOOK)
        if refused.code == "facts_changed":
            card.opened = card.opened.with_facts(refused.details)
        raise


def _as_seen(card: Card, by: User, payload: dict[str, JSON], posted: Mapping[str, str], via: str) -> Output:
    """Approve the edited call by the digest that was shown, or by that of the edit's facts if these were shown too."""
    try:
        return decide(card.row.pk, by, Decision.APPROVE, digest=posted.get("digest", ""), via=via, input=payload)
    except Conflict as conflict:
        seen = posted.get("seen", "")
        if conflict.code != "facts_changed" or conflict.details["digest"] != seen:
            raise
        return decide(card.row.pk, by, Decision.APPROVE, digest=seen, via=via, input=payload)


def _typed(posted: Mapping[str, str], name: str) -> str:
    return posted.get(name, "").replace("\r\n", "\n")[:TEXT_MOST]
