"""Whether the site is stopped: a process that is still running would overwrite what is restored."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.db import connection

from conversations.backup.databases import HELD_UNTIL
from conversations.database import hints
from conversations.database.sql import database_time
from conversations.models import Drain, Prompt, Worker

STOP = "Stop the site first, on every host: Ctrl-C where `make run` or `serve` runs, or `systemctl stop` its unit."

CLOSING_SECONDS = 1.0
"""How long PostgreSQL may still count a connection that was closed just now."""


def running_parts() -> list[str]:
    """Describe what is running; empty if the site is stopped. Other hosts' web servers are seen on PostgreSQL only."""
    return [*_web_server(), *_connections(), *_workers()]


def _web_server() -> Iterator[str]:
    with suppress(OSError), socket.create_connection((settings.HOST_HERE, settings.PORT), timeout=2):
        yield f"something answers at port {settings.PORT}"


def _connections() -> Iterator[str]:
    if connection.vendor != "postgresql":
        return
    hints.flush()  # which closes this process's own second connection
    until = time.monotonic() + CLOSING_SECONDS
    while (others := _other_connections()) and time.monotonic() < until:
        time.sleep(0.05)
    if others:
        yield f"{others} other connection{'s are' if others > 1 else ' is'} open to the database"


def _other_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        others: int = cursor.fetchone()[0]
        return others


def _workers() -> Iterator[str]:
    if Worker._meta.db_table not in connection.introspection.table_names():
        return
    now = database_time()
    beats = Worker.objects.filter(stopping=False, beat_at__gt=now - 2 * settings.AGENTSITE_BEAT_SECONDS)
    for host, beat_at in beats.values_list("host", "beat_at"):
        yield f"the worker on {host} reported {now - beat_at:.0f} seconds ago"
    for host in Drain.objects.filter(until__gt=now).values_list("host", flat=True).distinct().order_by("host"):
        yield f"a worker process on {host} is running turns"
    leased = Prompt.objects.filter(lease_until__gt=now)
    if held := leased.exclude(lease_until=HELD_UNTIL).count():  # HELD_UNTIL: left by a restore that did not finish
        yield f"{held} turn{'s are' if held > 1 else ' is'} held by a worker"
