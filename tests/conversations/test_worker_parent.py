"""The worker's parent looks after its cluster whatever else fails."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from conversations.accounts import mail
from conversations.worker.parent import Parent
from tests.agentsite.processes import wait_for

pytestmark = pytest.mark.django_db


class Silent:
    """A cluster that runs and says nothing."""

    running = True


@pytest.mark.parametrize("error", [TypeError("a wait without a pause"), OperationalError("no such table")])
def test_what_fails_in_telling_keeps_no_silent_cluster(
    error: Exception, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither ends the parent nor is it taken for a database that is away, without which nobody can beat."""
    tried: list[str] = []
    replaced: list[str] = []

    def tellings(*_args: object, **_more: object) -> None:
        tried.append("to tell")
        raise error

    monkeypatch.setattr(mail, "tellings", tellings)
    monkeypatch.setattr(Parent, "_replace", lambda parent: replaced.append("anew"))
    settings.AGENTSITE_BEAT_SECONDS = 0.5
    parent = Parent()
    monkeypatch.setattr(parent, "cluster", Silent())

    def looked_after() -> bool:
        parent.tend()
        return bool(replaced and tried)

    with parent.family.watching():
        wait_for(looked_after)
