"""What stands open on a card, and deciding by what its forms send: the same in the chat and in the admin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.engine.decisions import Decision
from agents.engine.ledger import JSON
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.edits import edit_check
from conversations.display.gate import Card, Opened
from conversations.display.schema_form import SchemaForm
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TEXT_MOST = 4_000
"""Characters of a reason or an answer."""

LOOK = "Nothing was decided: look at what is marked."
CANNOT = "This cannot be edited: what its tool takes is recorded nowhere."


def open_card(card: Card, state: str, posted: Mapping[str, str] | None = None) -> None:
    """Open the form of this name on a card: edit or reject. Anything else, and what may not be, leaves it plain."""
    if state == "edit" and card.editable and card.allow:
        form = edit_form(card, posted)
        card.opened = Opened("edit", form) if form else Opened(problem=CANNOT)
    elif state == Decision.REJECT and card.decidable and card.may:
        card.opened = Opened(Decision.REJECT)


def open_asked(cards: Iterable[Card], asked: Mapping[str, str]) -> None:
    """Open what an address asks for, without a script: `?edit=<output>` or `?reject=<output>`."""
    for card in cards:
        for state in ("edit", Decision.REJECT):
            if asked.get(state) == str(card.row.pk):
                open_card(card, state)


def edit_form(card: Card, posted: Mapping[str, str] | None = None) -> SchemaForm | None:
    """The fields of this call's input; None where it cannot be edited."""
    shape = edit_check(card.row)
    if shape is None:
        return None
    given: dict[str, JSON] = shape.asked.get("input", {})
    code = frozenset(given if card.call.effect == "write" else {"command"} if card.call.effect == "run" else ())
    return SchemaForm(shape.schema, given, posted, code)


def decide_posted(card: Card, by: User, posted: Mapping[str, str], via: str) -> Output:
    """Decide as a form says. Raises as `decide` does; what was typed then stands open on the card."""
    decision, digest = posted.get("decision", ""), posted.get("digest", "")
    if "edited" in posted and decision == Decision.APPROVE:
        return _approve_edited(card, by, posted, via)
    reason = _typed(posted, "reason") if decision == Decision.REJECT else ""
    answer = _typed(posted, "answer") if decision == Decision.ANSWER else None
    try:
        return decide(card.row.pk, by, decision, digest=digest, via=via, reason=reason, answer=answer)
    except DecisionRefused as refused:
        state = Decision.REJECT if decision == Decision.REJECT and card.decidable else "plain"
        card.opened = Opened(state, text=reason or answer or "", problem=str(refused))
        raise


def _approve_edited(card: Card, by: User, posted: Mapping[str, str], via: str) -> Output:
    form = edit_form(card, posted)
    if form is None:
        card.opened = Opened(problem=CANNOT)
        raise DecisionRefused("not_editable", CANNOT)
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
            card.opened = card.opened.telling(refused.details)
        raise


def _as_seen(card: Card, by: User, payload: dict[str, JSON], posted: Mapping[str, str], via: str) -> Output:
    """Approve the edited call by the digest of what was shown; or, where more was shown with the edit, by that one."""
    try:
        return decide(card.row.pk, by, Decision.APPROVE, digest=posted.get("digest", ""), via=via, input=payload)
    except Conflict as conflict:
        seen = posted.get("seen", "")
        if conflict.code != "facts_changed" or conflict.details["digest"] != seen:
            raise
        return decide(card.row.pk, by, Decision.APPROVE, digest=seen, via=via, input=payload)


def _typed(posted: Mapping[str, str], name: str) -> str:
    return posted.get(name, "").replace("\r\n", "\n")[:TEXT_MOST]
