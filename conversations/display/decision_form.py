"""The forms of an approval card, and deciding by what they submit: the same in the chat, the inbox and the admin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.contrib.auth.models import User

from agents.engine.decisions import RUNS, Decision
from agents.engine.ledger import JSON
from conversations.accounts.http import PersonRequest
from conversations.accounts.reauthentication import Entered, enter
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.approvals.edits import AS_IT_IS, edit_check
from conversations.approvals.grants import Remember, asked_of
from conversations.display.card_place import FORMS, REMEMBER
from conversations.display.gate import Card, Opened
from conversations.display.question import QuestionForm
from conversations.display.remember_form import READ_FIRST, RememberForm
from conversations.display.schema_form import SchemaForm
from conversations.models import Output

TEXT_MOST = 4_000
"""Maximum length of a reason, in characters."""

LOOK = "Nothing was decided. Check the marked fields."

NOT_GRANTABLE = "Calls like this one cannot be granted. Approve it alone, or reject it."
_CODE = ("command", "argv")
"""The names of what a call runs."""


class RowsChanged(DecisionRefused):
    """A form that was sent only to add or remove a row in it: it is shown again, and nothing was decided."""

    def __init__(self) -> None:
        super().__init__("rows_changed", "Nothing was decided: a row was added or removed.")


def open_card(card: Card, state: str) -> None:
    """Open a form on a card: edit, reject or remember. Anything else, or what is not allowed, leaves the card plain."""
    if state == "edit" and card.editable and card.allow:
        form = edit_form(card)
        card.opened = Opened("edit", form) if form else Opened(problem=AS_IT_IS)
    elif state == Decision.REJECT and card.decidable and card.may:
        card.opened = Opened(Decision.REJECT)
    elif state == REMEMBER and (remember := remember_form(card)):
        card.opened = Opened(REMEMBER, remember=remember)


def open_asked(cards: Iterable[Card], asked: Mapping[str, str]) -> None:
    """Open the form that an address asks for, without JavaScript, such as `?edit=<output>` or `?reject=<output>`."""
    for card in cards:
        for state in FORMS:
            if asked.get(state) == str(card.row.pk):
                open_card(card, state)


def remember_form(card: Card, posted: Mapping[str, str] | None = None) -> RememberForm | None:
    """Return the form by which calls like this one are granted; None if the reader cannot grant them."""
    asked = asked_of([card.row]).get(card.row.pk) if card.rememberable else None
    return RememberForm(asked, posted) if asked else None


def edit_form(card: Card, posted: Mapping[str, str] | None = None, prefix: str = "") -> SchemaForm | None:
    """Return the form of this call's input; None if it cannot be edited. `prefix`: see SchemaForm."""
    shape = edit_check(card.row)
    if shape is None:
        return None
    given: dict[str, JSON] = shape.asked.get("input", {})
    code = frozenset(given if card.call.effect in ("write", "delete") else _CODE if card.call.effect == "run" else ())
    return SchemaForm(shape.schema, given, posted, code, prefix=prefix)


def decide_posted(card: Card, request: PersonRequest, via: str) -> Output:
    """Decide with a submitted form. Raises what `decide` raises; the card's form then shows what was typed."""
    posted = request.POST
    needed = card.password and posted.get("decision", "") in RUNS
    entered = enter(request, posted.get("password", "")) if needed else Entered()
    try:
        return _decide(card, request.user, posted, via, verified=entered.verified)
    except DecisionRefused as refused:
        card.opened = replace(card.opened, password=entered.problem)
        if refused.code == "reauthenticate":  # its field says so
            card.opened = replace(card.opened, problem="")
        raise


def _decide(card: Card, by: User, posted: Mapping[str, str], via: str, *, verified: bool) -> Output:
    decision, digest = posted.get("decision", ""), posted.get("digest", "")
    if "edited" in posted and decision == Decision.APPROVE:
        return _approve_edited(card, by, posted, via, verified=verified)
    if REMEMBER in posted and decision == Decision.APPROVE:
        return _approve_and_remember(card, by, posted, via, verified=verified)
    if decision == Decision.ANSWER and card.question:
        return _answered(card, by, QuestionForm(card.question, posted), digest, via)
    reason = _typed(posted, "reason") if decision == Decision.REJECT else ""
    try:
        return decide(card.row.pk, by, decision, digest=digest, via=via, reason=reason, verified=verified)
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


def _approve_and_remember(card: Card, by: User, posted: Mapping[str, str], via: str, *, verified: bool) -> Output:
    """Approve, and store a grant, if whoever sent the form has read in words what it allows."""
    form = remember_form(card, posted)
    try:
        remember, digest = _remembered(card, form), posted.get("digest", "")
        return decide(card.row.pk, by, Decision.APPROVE, digest=digest, via=via, remember=remember, verified=verified)
    except DecisionRefused as refused:
        if form and refused.code == "invalid_grant" and refused.details:
            form.refuse(refused.details, str(refused))
        card.opened = Opened(REMEMBER if form else "plain", remember=form, problem=str(refused))
        raise


def _remembered(card: Card, form: RememberForm | None) -> Remember | None:
    """Return what is to be remembered. Of a card that was decided meanwhile, `decide` says what became of it."""
    if form is None and card.pending:
        raise DecisionRefused("invalid_grant", f"Nothing was decided. {NOT_GRANTABLE}")
    if form and form.grant is None:
        raise DecisionRefused("invalid_grant", LOOK)
    if form and not form.read:
        raise DecisionRefused("not_read", READ_FIRST)
    return form.remember if form else None


def _approve_edited(card: Card, by: User, posted: Mapping[str, str], via: str, *, verified: bool) -> Output:
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
        digest, seen = posted.get("digest", ""), posted.get("seen", "")
        return decide(
            card.row.pk, by, Decision.APPROVE, digest=digest, seen=seen, via=via, input=payload, verified=verified
        )
    except DecisionRefused as refused:
        card.opened = Opened("edit", form, problem=str(refused))
        if refused.code == "invalid_input":
            form.errors = refused.details
            card.opened = replace(card.opened, problem=LOOK)
        if refused.code == "facts_changed":
            card.opened = card.opened.with_facts(refused.details)
        raise


def _typed(posted: Mapping[str, str], name: str) -> str:
    return posted.get(name, "").replace("\r\n", "\n")[:TEXT_MOST]
