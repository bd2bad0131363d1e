"""Who may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def may_decide(user: User, output: Output) -> bool:
    """Owners decide their own calls, others with the permission for others; neither for people who were deactivated."""
    if not user.is_active:
        return False
    own = output.conversation.owner_id == user.pk
    return user.has_perm("conversations.decide_own_approval" if own else "conversations.decide_approval")
