"""The default group, which holds what every user may do."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission, User

MEMBERS = "Members"


def create_members_group(**kwargs: Any) -> None:
    """Create the group, and allow its members to decide their own approvals. A receiver of `post_migrate`."""
    group, made = Group.objects.get_or_create(name=MEMBERS)
    permission = Permission.objects.filter(codename="decide_own_approval").first()
    if made and permission:  # afterwards the group is for administrators to change
        group.permissions.add(permission)


def add_to_members(instance: User, created: bool, raw: bool = False, **kwargs: Any) -> None:
    """Add a new user to the group. A receiver of the user's `post_save`."""
    if created and not raw:
        instance.groups.add(Group.objects.get_or_create(name=MEMBERS)[0])
