"""Blueprints: recipes of the site, of which an agent is told those that fit what was said."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models, transaction

from agents.models.searched import Searched

NAME_MOST, WHEN_MOST, TEXT_MOST = 100, 1024, 20_000
"""Characters of a blueprint's name, of when to use it, and of its text."""
TAGS_MOST, TAG_MOST = 20, 50
"""Tags of a blueprint, and characters of each."""


class Blueprint(Searched):
    """A recipe: it is found by what somebody says, and then stands in what their agent is told, as knowledge.

    One that a model `proposed` is disabled until an administrator has read it. `version` is raised whenever it is
    saved. One that is `restricted` and has no groups, since they were deleted, is told to nobody.
    """

    COLLECTION = "blueprints"

    name = models.CharField(max_length=NAME_MOST, unique=True)
    when = models.CharField(
        max_length=WHEN_MOST, help_text="When to use it, in words that people use who need it: it is found by them."
    )
    text = models.TextField(max_length=TEXT_MOST, help_text="What the agent is told then, as Markdown.")
    tags = models.JSONField(default=list, blank=True, help_text="More words by which it is found, separated by commas.")
    enabled = models.BooleanField(default=True, help_text="Agents are told only of enabled blueprints.")
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        help_text="Only the agents of people in one of these groups are told of it.",
    )
    restricted = models.BooleanField(
        "only for groups",
        default=False,
        help_text="The agents of others are not told of it. It stays so if its groups are deleted: then no agent is.",
    )
    version = models.PositiveIntegerField(default=0, editable=False)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Whose agent proposed it. Empty: a person wrote it, or that person is gone.",
    )
    proposed = models.BooleanField(
        default=False, editable=False, help_text="A model proposed it, and nobody has enabled it yet."
    )
    key = models.CharField(  # noqa: DJ001 - many have none, and each that there is stands once
        max_length=64, null=True, unique=True, editable=False, help_text="The call that proposed it: it does so once."
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it as its next version, also if somebody else has saved one meanwhile."""
        with transaction.atomic():
            before = Blueprint.objects.select_for_update().filter(pk=self.pk).values_list("version", flat=True).first()
            self.version = (before or 0) + 1
            self.proposed = self.proposed and not self.enabled
            super().save(*args, **kwargs)

    @property
    def collection(self) -> str:
        """That of all blueprints: who may be told of which is looked at when one is searched for."""
        return self.COLLECTION

    def searched(self) -> tuple[str, str] | None:
        """Return its name, what it is for and its tags as the title; None while it is disabled."""
        return ("\n".join([self.name, self.when, *self.tags]), self.text) if self.enabled else None


def restrict(instance: Blueprint, action: str, **kwargs: Any) -> None:
    """Restrict a blueprint that is given to groups. A receiver of `m2m_changed` of its groups.

    A group that is deleted is not taken out of it in this sense: so it never becomes everybody's by that.
    """
    if action == "pre_add":
        instance.restricted = True
        Blueprint.objects.filter(pk=instance.pk).update(restricted=True)
