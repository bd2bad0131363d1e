"""The database's clock, by which all leases and beats are measured: workers' own clocks may differ."""

from django.db import connection

from conversations.journal import now


def database_time() -> float:
    """Seconds since 1970."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now()}")
        value: float = cursor.fetchone()[0]
    return value
