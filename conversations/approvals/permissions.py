"""Permissions: who may see, decide and approve calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db.models import QuerySet

from agents.engine.actors import Actor
from agents.engine.execution.gates import ANOTHER
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

DECIDE_OWN, DECIDE_OTHERS = "conversations.decide_own_approval", "conversations.decide_approval"


Gated = TypeVar("Gated", bound=Output)


def shown_to(staff: User | AnonymousUser, outputs: QuerySet[Gated]) -> QuerySet[Gated]:
    """Return the outputs that the admin shows as approvals: all to people who decide for others, else their own."""
    if staff.has_perm(DECIDE_OTHERS):
        return outputs
    return outputs.filter(conversation__owner_id=staff.pk)


def may_be_told(user: User | AnonymousUser, output: Output) -> bool:
    """Whether this user may be told of the output when they decide it.

    Somebody was asked about it, or they can read it anyway: a permission to decide is none to read.
    """
    return bool(output.gate) or Output.objects.visible_to(user).filter(pk=output.pk).exists()


def may_decide(user: User | AnonymousUser, output: Output) -> bool:
    """Whether this user may decide: their own calls, or others', with the permission for each. Never if deactivated."""
    if not user.is_active:
        return False
    return user.has_perm(DECIDE_OWN if output.conversation.owner_id == user.pk else DECIDE_OTHERS)


def may_allow(user: User | AnonymousUser, output: Output) -> bool:
    """Whether this user may approve the call, or answer the question.

    With four eyes, not if they asked for it, even as a superuser (C13).
    """
    return may_decide(user, output) and user.pk not in barred_from_allowing(output)


def barred_from_allowing(output: Output) -> set[int]:
    """Return who may decide but not approve: with four eyes, who asked for the turn and who edited the call."""
    if output.who != ANOTHER:
        return set()
    editor = Actor.parse(output.edited_by).pk
    return requesters(output.conversation.owner_id, output.prompt.asked_by_id) | ({editor} if editor else set())


def requesters(owner: int, asked_by: int | None) -> set[int]:
    """Return the users who count as having asked for a turn: the conversation's owner, and whoever asked."""
    return {owner} if asked_by is None else {owner, asked_by}
