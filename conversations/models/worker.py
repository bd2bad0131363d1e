"""Workers: the worker of each host with its heartbeat, and its drains with their leases."""

from django.db import models


class Worker(models.Model):
    """The worker of one host. Times are seconds since 1970, by the database's clock."""

    host = models.CharField(max_length=100, unique=True)
    pid = models.PositiveIntegerField(default=0, help_text="Of the parent, `manage.py worker`.")
    started_at = models.FloatField(default=0, help_text="When its cluster was last started.")
    beat_at = models.FloatField(default=0, help_text="When a background task of it last ran.")
    stopping = models.BooleanField(default=False, help_text="The stop mark, which its drains read.")
    drains = models.PositiveSmallIntegerField(default=1, help_text="How many it is to have, numbered from 0.")

    def __str__(self) -> str:
        return self.host


class Drain(models.Model):
    """A process of a host that runs turns. Whoever holds the lease of a number is the drain with that number."""

    host = models.CharField(max_length=100)
    number = models.PositiveSmallIntegerField()
    token = models.CharField(max_length=64, help_text="Of the process that took the number.")
    until = models.FloatField(default=0, help_text="Until when it holds the number, by the database's clock.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "number"], name="one_drain_per_number")]

    def __str__(self) -> str:
        return f"{self.host}/{self.number}"
