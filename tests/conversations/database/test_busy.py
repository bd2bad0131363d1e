"""A lock that is not given in time, wherever in a request it is waited for."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, OperationalError
from django.test import Client

from conversations.database.busy import DatabaseBusy, is_busy, reporting_busy
from tests.conversations.support import PASSWORD


def test_which_errors_say_so() -> None:
    """SQLite's words, PostgreSQL's code, and whatever they led to; others do not."""
    lock = DatabaseError("canceling statement due to lock timeout")
    lock.__cause__ = type("LockNotAvailable", (Exception,), {"sqlstate": "55P03"})()
    outer = ValueError("later")
    outer.__context__ = OperationalError("database is locked")
    assert [is_busy(error) for error in (lock, outer, OperationalError("database table is locked: x"))] == [True] * 3
    assert not any(
        is_busy(error) for error in (None, ValueError("database is locked"), OperationalError("no such table"))
    )


def test_other_errors_are_raised_as_they_are() -> None:
    with pytest.raises(OperationalError, match="no such table"), reporting_busy():
        raise OperationalError("no such table")
    with pytest.raises(DatabaseBusy, match="Send it again in a moment"), reporting_busy():
        raise OperationalError("database is locked")


@pytest.mark.django_db
@pytest.mark.parametrize("fails", ["create", "save"])
def test_a_session_that_cannot_be_stored(ann: User, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the view that signs somebody in, or in the middleware after it: the same answer, without the password."""

    def busy(*_args: object, **_options: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(SessionStore, fails, busy)
    client = Client(raise_request_exception=False)
    answer = client.post("/login/", {"username": "ann", "password": PASSWORD})
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "The database is busy" in answer.text
    assert PASSWORD not in answer.text
