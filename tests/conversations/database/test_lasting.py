"""Lasting connections: they stay open between two uses, and one that was cut meanwhile is opened anew."""

from collections.abc import Iterator

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.lasting import keep_connections
from tests.conversations.recorded import meddle

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lasting(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaseDatabaseWrapper]:
    """A connection that was opened after the process was told to keep them."""
    monkeypatch.setitem(connections.settings, DEFAULT_DB_ALIAS, {**connection.settings_dict})
    keep_connections()
    opened = connections.create_connection(DEFAULT_DB_ALIAS)
    assert answers(opened)
    yield opened
    opened.close()


def answers(opened: BaseDatabaseWrapper) -> bool:
    with opened.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone() == (1,))


def test_a_connection_stays_open_when_django_q2_lets_go_of_old_ones(lasting: BaseDatabaseWrapper) -> None:
    first = lasting.connection
    lasting.close_if_unusable_or_obsolete()
    assert answers(lasting)
    assert lasting.connection is first


@pytest.mark.postgres
def test_one_that_was_cut_meanwhile_is_opened_anew(lasting: BaseDatabaseWrapper) -> None:
    """PostgreSQL was restarted: the first look after that works."""
    meddle("SELECT pg_terminate_backend(%s)", [lasting.connection.info.backend_pid])
    lasting.close_if_unusable_or_obsolete()
    assert answers(lasting)
