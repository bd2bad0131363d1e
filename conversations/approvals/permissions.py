"""Permissions: who may see, decide and approve calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.db.models import Q, QuerySet

from agents.engine import actors
from agents.engine.actors import Actor
from agents.engine.execution.gates import ANOTHER
from agents.engine.tools.tool import Risk
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

COUNT_MOST = 100
"""Approvals are counted up to this number; "99+" means that there are more."""
DECIDE_OWN, DECIDE_OTHERS = "conversations.decide_own_approval", "conversations.decide_approval"


Gated = TypeVar("Gated", bound=Output)


def decides(user: User | AnonymousUser) -> bool:
    """Whether there is anything that this user may decide: calls of their own, or those of others."""
    return user.has_perm(DECIDE_OWN) or user.has_perm(DECIDE_OTHERS)


def shown_to(user: User | AnonymousUser, outputs: QuerySet[Gated]) -> QuerySet[Gated]:
    """Return the outputs that are shown as approvals: all to people who decide for others, else their own."""
    if user.has_perm(DECIDE_OTHERS):
        return outputs
    return outputs.filter(conversation__owner_id=user.pk)


def told_to(user: User | AnonymousUser) -> QuerySet[Output]:
    """Return what this user may be told of: approvals that are shown to them, and outputs of their own, gated or not.

    Of anything else not even that it exists.
    """
    return shown_to(user, Output.objects.gates()) | Output.objects.visible_to(user)


def allowed_to(user: User | AnonymousUser, outputs: QuerySet[Gated]) -> QuerySet[Gated]:
    """Return those of these outputs that `may_allow` lets the user approve or answer, in the same query."""
    if user.pk is None or not decides(user):
        return outputs.none()
    own = Q(conversation__owner_id=user.pk)
    if not user.has_perm(DECIDE_OTHERS):
        outputs = outputs.filter(own)
    elif not user.has_perm(DECIDE_OWN):
        outputs = outputs.exclude(own)
    theirs = own | Q(prompt__asked_by_id=user.pk) | Q(edited_by=actors.user(user.pk))
    return outputs.exclude(Q(who=ANOTHER) & theirs)


def count_waiting(user: User | AnonymousUser) -> int:
    """Return how many approvals wait for this user, counted up to COUNT_MOST."""
    return allowed_to(user, Output.objects.pending()).order_by()[:COUNT_MOST].count()


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


def needs_password(output: Output) -> bool:
    """Whether whoever lets this call run must have entered their password lately, as the site says for its risk."""
    return (output.risk or Risk.READ) in settings.AGENTSITE_REAUTHENTICATE


def barred_from_allowing(output: Output) -> set[int]:
    """Return who may decide but not approve: with four eyes, who asked for the turn and who edited the call."""
    if output.who != ANOTHER:
        return set()
    editor = Actor.parse(output.edited_by).pk
    return requesters(output.conversation.owner_id, output.prompt.asked_by_id) | ({editor} if editor else set())


def requesters(owner: int, asked_by: int | None) -> set[int]:
    """Return the users who count as having asked for a turn: the conversation's owner, and whoever asked."""
    return {owner} if asked_by is None else {owner, asked_by}
