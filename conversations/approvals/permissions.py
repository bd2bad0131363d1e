"""Who may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db.models import QuerySet

from agents.engine.execution.gates import ANOTHER
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

DECIDE_OWN, DECIDE_OTHERS = "conversations.decide_own_approval", "conversations.decide_approval"


Shown = TypeVar("Shown", bound=Output)


def shown_to(staff: User | AnonymousUser, outputs: QuerySet[Shown]) -> QuerySet[Shown]:
    """Those of the outputs that the admin's approvals show: all to whoever decides for others, else a person's own."""
    if staff.has_perm(DECIDE_OTHERS):
        return outputs
    return outputs.filter(conversation__owner_id=staff.pk)


def may_decide(user: User | AnonymousUser, output: Output) -> bool:
    """Owners decide their own calls, others with the permission for others; neither for people who were deactivated."""
    if not user.is_active:
        return False
    return user.has_perm(DECIDE_OWN if output.conversation.owner_id == user.pk else DECIDE_OTHERS)


def may_allow(user: User | AnonymousUser, output: Output) -> bool:
    """Whether they may let the call run: with four eyes not whoever asked for the turn, superusers included (C13)."""
    return may_decide(user, output) and user.pk not in barred_from_allowing(output)


def barred_from_allowing(output: Output) -> set[int]:
    """Those who may not let the call run although they may decide: with four eyes, whoever asked for it."""
    return requesters(output.conversation.owner_id, output.prompt.asked_by_id) if output.who == ANOTHER else set()


def requesters(owner: int, asked_by: int | None) -> set[int]:
    """Whose wish a turn is: who owns its conversation, and who asked for it."""
    return {owner} if asked_by is None else {owner, asked_by}
