"""Who may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db.models import QuerySet

from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


Shown = TypeVar("Shown", bound=Output)


def shown_to(staff: User | AnonymousUser, outputs: QuerySet[Shown]) -> QuerySet[Shown]:
    """Those of the outputs that the admin's approvals show: all to whoever decides for others, else a person's own."""
    if staff.has_perm("conversations.decide_approval"):
        return outputs
    return outputs.filter(conversation__owner_id=staff.pk)


def may_decide(user: User | AnonymousUser, output: Output) -> bool:
    """Owners decide their own calls, others with the permission for others; neither for people who were deactivated."""
    if not user.is_active:
        return False
    own = output.conversation.owner_id == user.pk
    return user.has_perm("conversations.decide_own_approval" if own else "conversations.decide_approval")
