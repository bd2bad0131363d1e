"""Lasting connections, for processes that use the database now and then, for as long as they run."""

from django.db import DEFAULT_DB_ALIAS, connections


def keep_connections() -> None:
    """Have each thread of this process, and of those forked from it, keep the connection that it opens from now on.

    django-q2 lets go of it before each look at its queue, once a second: opening it anew costs more than the look. When
    it was let go, PostgreSQL's is tested before it is used again: the server may have been restarted. Web servers open
    one for each request: they have as many threads as there are requests at once.
    """
    connections.settings[DEFAULT_DB_ALIAS].update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=True)
