"""Workers: the worker of each host, its heartbeat, and its one drain."""

from django.db import models


class Worker(models.Model):
    """The worker of one host. Times are seconds since 1970, by the database's clock."""

    host = models.CharField(max_length=100, unique=True)
    pid = models.PositiveIntegerField(default=0, help_text="Of the parent, `manage.py worker`.")
    started_at = models.FloatField(default=0)
    beat_at = models.FloatField(default=0, help_text="When a background task of it last ran.")
    stopping = models.BooleanField(default=False, help_text="The stop mark, which its drain reads.")

    def __str__(self) -> str:
        return self.host


class Drain(models.Model):
    """The process of a host that runs turns. There is one per host, for as long as its lease lasts."""

    host = models.CharField(max_length=100, unique=True)
    token = models.CharField(max_length=64, help_text="Which process: another one's lease is not renewed.")
    lease_until = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"{self.host} {self.token}"
