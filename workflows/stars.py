"""Stars: what a person marked to find it again, workflows and runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model

from conversations.models import Prompt
from workflows.models import RunStar, WorkflowStar


def starred_workflows(user: User) -> set[str]:
    """Return the names of the workflows that this person starred."""
    return set(WorkflowStar.objects.filter(user=user).values_list("name", flat=True))


def starred_runs(user: User, runs: Iterable[Prompt]) -> set[int]:
    """Return the ids of those of these runs that this person starred."""
    return set(RunStar.objects.filter(user=user, prompt__in=list(runs)).values_list("prompt", flat=True))


def star_workflow(user: User, name: str, starred: bool) -> None:
    """Give this workflow a star of this person, or take it away."""
    _star(WorkflowStar, user, starred, name=name)


def star_run(user: User, run: Prompt, starred: bool) -> None:
    """Give this run a star of this person, or take it away."""
    _star(RunStar, user, starred, prompt=run)


def _star(model: type[Model], user: User, starred: bool, **what: Any) -> None:
    stars = model._default_manager
    if not starred:
        stars.filter(user=user, **what).delete()
        return
    with transaction.atomic():
        # Locked: somebody who is being erased at this moment leaves nothing behind.
        if User.objects.select_for_update(no_key=True).get(pk=user.pk).is_active:
            stars.get_or_create(user=user, **what)
