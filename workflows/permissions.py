"""Who may run a workflow: what its author declared, or else what an administrator decided."""

from __future__ import annotations

from django.contrib.auth.models import User

from workflows.models import WorkflowSetting


def why_not(name: str, declared: str | None, user: User) -> str | None:
    """Return why this person may not run the workflow of this name, in a sentence for them; None if they may.

    `declared`: the permission that its author wants, if no administrator has decided otherwise.
    """
    if not user.is_active:
        return "This account was deactivated."
    setting = WorkflowSetting.objects.filter(name=name).first()
    if setting and not setting.enabled:
        return "An administrator has turned this workflow off."
    permission = setting.permission if setting else declared
    if permission and not user.has_perm(permission):
        return f"It takes the permission {permission}, which you do not have. Ask an administrator."
    groups = list(setting.groups.all()) if setting else []
    if groups and not user.is_superuser and not user.groups.filter(pk__in=groups).exists():
        return "Only members of certain groups may run this workflow. Ask an administrator."
    return None
