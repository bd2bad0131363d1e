"""The kill switch: while it is on, no turn runs."""

from __future__ import annotations

from django.db import models


class KillSwitch(models.Model):
    """One time that the switch was on. It is on while a row is not lifted; rows stay, and say who, when and why."""

    on_by = models.CharField(max_length=150)
    on_at = models.DateTimeField(auto_now_add=True)
    reason = models.TextField(blank=True)
    off_by = models.CharField(max_length=150, blank=True)
    off_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "kill switch"
        default_permissions = ()
        permissions = [("use_kill_switch", "Can stop all turns, and let them go on")]
        constraints = [
            # An index over a value that all of them have: one row, and no second one while it is on.
            models.UniqueConstraint(models.Value(1), name="one_switch_on", condition=models.Q(off_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"Stopped by {self.on_by} at {self.on_at:%Y-%m-%d %H:%M}"
