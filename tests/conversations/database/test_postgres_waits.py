"""Timeouts on PostgreSQL: how long a session of the site may wait, or keep others waiting."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from agentsite.databases import from_url

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


def test_the_server_holds_to_it_and_to_what_the_address_says(settings: Settings) -> None:
    assert shown(settings.DATABASES["default"]["OPTIONS"]) == ("20s", "25s")
    own = from_url("postgres://host/name?options=-c%20lock_timeout%3D5s", Path())["OPTIONS"]
    assert shown(own) == ("20s", "5s")


def shown(options: dict[str, object]) -> tuple[str, ...]:
    with closing(connections.create_connection("default")) as connection:
        connection.settings_dict = {**connection.settings_dict, "OPTIONS": options}
        with connection.cursor() as cursor:
            names = ("idle_in_transaction_session_timeout", "lock_timeout")
            cursor.execute("SELECT current_setting(%s), current_setting(%s)", names)
            return tuple(cursor.fetchone())
