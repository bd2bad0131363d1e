"""Workers: the worker of each host, its heartbeat, and the lease of its one drain."""

from django.db import models


class Worker(models.Model):
    """The worker of one host. Times are seconds since 1970, by the database's clock."""

    host = models.CharField(max_length=100, unique=True)
    pid = models.PositiveIntegerField(default=0, help_text="Of the parent, `manage.py worker`.")
    started_at = models.FloatField(default=0, help_text="When its cluster was last started.")
    beat_at = models.FloatField(default=0, help_text="When a background task of it last ran.")
    stopping = models.BooleanField(default=False, help_text="The stop mark, which its drain reads.")
    drain = models.CharField(
        max_length=64, blank=True, help_text="The process that runs turns, of which a host has one."
    )
    drain_until = models.FloatField(default=0, help_text="Until when it is the host's drain, by the database's clock.")

    def __str__(self) -> str:
        return self.host
