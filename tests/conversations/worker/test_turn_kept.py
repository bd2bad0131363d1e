"""A tool that ran, and whose file the database does not take: nobody may take its call for one that failed."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import DataError, Error, OperationalError

from conversations.models import File, Prompt, Step
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, in_this_thread, meddle, pending, taken
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

SCRIPT = (says("A file.", call("report.write", name="q")), says("Done."))


def refuse(site: Site, *errors: Error) -> None:
    """The rows of files are refused with these, one after the other; then they are taken."""
    left, save = list(errors), File.save

    def fails(row: File, *args: Any, **more: Any) -> None:
        if left:
            raise left.pop()
        save(row, *args, **more)

    site.monkeypatch.setattr(File, "save", fails)


def test_a_database_that_goes_away_after_the_effect_leaves_it_to_its_owner(ann: User, site: Site) -> None:
    """R15: the run breaks off as it does in a crash, and who takes the turn up asks whether it ran."""
    prompt = site.starts(ann, *SCRIPT)
    refuse(site, OperationalError("server closed the connection unexpectedly"))
    async_to_sync(Runner(taken(prompt), "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True))()
    assert site.world.done == [("report.write", "q")]
    assert not Step.objects.filter(path="1/0", type="action_result").exists()
    assert Prompt.objects.get().lease_until > 0
    meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [prompt.pk])
    site.works()
    (gate,) = pending(prompt)
    assert (gate.ask, site.world.done) == ("interrupted", [("report.write", "q")])
    assert verify(prompt.conversation_id).problems == []


def test_a_file_that_the_database_refuses_does_not_undo_the_call(ann: User, site: Site) -> None:
    """Its name is too long, say: that will not change, so the model reads it, and that the tool ran."""
    refuse(site, DataError("value too long for type character varying(255)"))
    prompt = site.runs(ann, *SCRIPT)
    result = prompt.steps.get(path="1/0", type="action_result").content
    assert (prompt.state, result["code"]) == ("completed", "not_kept")
    why = "a.txt was not stored: DataError: value too long for type character varying(255)"
    assert result["message"] == f"It ran, but its result could not be saved. {why}"
    assert site.world.done == [("report.write", "q")]
