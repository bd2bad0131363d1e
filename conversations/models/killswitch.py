"""The kill switch: while it is on, no turn runs."""

from __future__ import annotations

from django.db import models


class KillSwitch(models.Model):
    """One period during which the switch was on. It is on while a row has no `off_at`. Rows keep who, when and why."""

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
            # A unique index over a constant: at most one row can be on at a time.
            models.UniqueConstraint(models.Value(1), name="one_switch_on", condition=models.Q(off_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"Stopped by {self.on_by} at {self.on_at:%Y-%m-%d %H:%M}"
