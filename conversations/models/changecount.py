"""How often people have changed what turns rely on."""

from django.db import models


class ChangeCount(models.Model):
    """One row: a number that triggers raise with each change (see conversations.database.changes)."""

    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.number} changes"
