"""Who may run a workflow, and who sees it: what its author declared, or else what an administrator decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from django.contrib.auth.models import Group, User
from django.db.models import Exists, OuterRef, QuerySet

from workflows.models import WorkflowSetting


class Declared(Protocol):
    """A workflow, as far as its rights go."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def permission(self) -> str | None:
        """The permission that its author wants, if no administrator has decided otherwise; None: no particular one."""
        ...


W = TypeVar("W", bound=Declared)


@dataclass(frozen=True)
class SeenWorkflow(Generic[W]):
    """A workflow that a person sees. `permission`: what it takes to run it now; "" for no particular permission.

    `why_not`: why they may not run it, in a sentence for them; None if they may.
    """

    workflow: W
    permission: str
    why_not: str | None


def visible_to(user: User, workflows: Iterable[W]) -> list[SeenWorkflow[W]]:
    """Return those of these workflows that this person sees, in their order, with one query for all settings.

    They see what they may run, and what an administrator lists to others too. A deactivated person sees none.
    """
    if not user.is_active:
        return []
    settings = {each.name: each for each in _settings_for(user)}
    found = []
    for each in workflows:
        setting = settings.get(each.name)
        reason = _why_not(setting, each.permission, user)
        if reason is None or (setting and setting.list_to_others):
            found.append(SeenWorkflow(each, _permission(setting, each.permission), reason))
    return found


def why_not(name: str, declared: str | None, user: User) -> str | None:
    """Return why this person may not run the workflow of this name, in a sentence for them; None if they may.

    `declared`: the permission that its author wants, if no administrator has decided otherwise.
    """
    return _why_not(_settings_for(user).filter(name=name).first(), declared, user)


def _settings_for(user: User) -> QuerySet[Any]:
    """Return the settings; each says whether groups are named (`for_groups`), and whether this person is in one."""
    groups = Group.objects.filter(workflowsetting=OuterRef("pk"))
    return WorkflowSetting.objects.annotate(for_groups=Exists(groups), in_group=Exists(groups.filter(user=user)))


def _why_not(setting: Any, declared: str | None, user: User) -> str | None:
    if not user.is_active:
        return "This account was deactivated."
    if setting and not setting.enabled:
        return "An administrator has turned this workflow off."
    permission = _permission(setting, declared)
    if permission and not user.has_perm(permission):
        return f"It needs the permission {permission}, which you do not have. Ask an administrator."
    if setting and setting.for_groups and not setting.in_group and not user.is_superuser:
        return "Only members of certain groups may run this workflow. Ask an administrator."
    return None


def _permission(setting: Any, declared: str | None) -> str:
    return (setting.permission if setting else "") or declared or ""
