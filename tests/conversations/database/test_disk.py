"""Full disks (CP34): told from other errors, waited out by workers, shown to people, and over when there is space."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client

from agents.engine.errors import Draining
from conversations.database import disk, retries
from conversations.ledger.claims import Claim
from conversations.models import File, KillSwitch, Prompt
from conversations.prompts.start import start_conversation
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.api.client import said, with_key
from tests.conversations.recorded import Site, in_this_thread, meddle, taken
from tests.engine.support import call, says

LONG = "word " * 30_000
sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="a limit on pages is SQLite's")


@pytest.fixture(autouse=True)
def _flag_of_its_own(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.AGENTSITE_DATA = tmp_path
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.01)
    yield
    disk.report_space()


def pragma(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        return int(cursor.fetchone()[0])


@contextmanager
def full() -> Iterator[None]:
    """The database may not grow by a page, and has no free one."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    pragma(f"max_page_count = {pragma('page_count')}")
    try:
        yield
    finally:
        pragma("max_page_count = 1073741823")


def of_postgres() -> OperationalError:
    error = OperationalError("could not extend file: No space left on device")
    error.__cause__ = type("DiskFull", (Exception,), {"sqlstate": "53100"})()
    return error


def raised_from(error: Exception) -> Exception:
    outer = RuntimeError("it did not work")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EFBIG, "File too large"),
        OperationalError("database or disk is full"),
        OperationalError("disk I/O error"),
        of_postgres(),
        raised_from(OSError(errno.ENOSPC, "No space left on device")),
    ],
)
def test_a_full_disk_is_told_from_other_errors(error: Exception) -> None:
    assert disk.is_full(error)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EACCES, "Permission denied"), OperationalError("database is locked"), ValueError("disk I/O error")],
)
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not disk.is_full(error)
    assert not disk.report_if_full(error)
    assert not disk.is_short()


def test_it_is_said_once_and_counts_while_it_is_fresh(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    for _ in range(3):
        assert disk.report_if_full(OSError(errno.ENOSPC, "No space left on device"))
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert disk.is_short()
    old = time.time() - disk.FRESH_SECONDS - 1
    os.utime(tmp_path / "disk-full", (old, old))
    assert not disk.is_short()
    disk.report_space()
    disk.report_space()
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]


def test_next_to_no_free_space_is_as_good_as_full(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": disk.LEAST_BYTES - 1})
    monkeypatch.setattr("conversations.database.disk.shutil.disk_usage", lambda folder: usage)
    assert disk.is_short()


@sqlite
@pytest.mark.django_db(transaction=True)
def test_a_worker_on_a_full_disk_keeps_the_answer_until_there_is_space(
    ann: User, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """CP34, I4: the model is asked once, nothing is done twice, it is logged once, and the turn goes on."""
    prompt = site.starts(ann, says(LONG, call("report.write", name="q")), says("Done."))
    held = taken(prompt)

    async def run() -> None:
        turn = asyncio.create_task(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True)())
        while not disk.is_short():
            assert not turn.done()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # it tries again and again meanwhile
        assert not turn.done()
        assert (await in_this_thread(verify, prompt.conversation_id)).problems == []
        await in_this_thread(pragma, "max_page_count = 1073741823")
        await turn

    with full():
        async_to_sync(run)()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason, prompt.lease_until) == ("completed", "text", 0)
    assert site.world.done == [("report.write", "q")]
    assert verify(prompt.conversation_id).problems == []
    assert sum("the disk is full" in record.message for record in caplog.records) == 1
    assert not disk.is_short()


def outlasted(prompt: Prompt) -> Claim | None:
    """The lease has run out when there is space again; nobody takes the turn."""
    meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [prompt.pk])
    return None


def taken_over(prompt: Prompt) -> Claim | None:
    """The same, and another worker is faster."""
    outlasted(prompt)
    return taken(prompt)


def stopped(prompt: Prompt) -> Claim | None:
    """The same, and the kill switch is on."""
    outlasted(prompt)
    KillSwitch.objects.create(on_by="system", reason="Stop.")
    return None


@sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("meanwhile", "told", "lands"),
    [(outlasted, False, True), (outlasted, True, True), (taken_over, False, False), (stopped, False, False)],
)
def test_a_disk_that_is_full_for_longer_than_a_lease_loses_nothing(
    ann: User, site: Site, meanwhile: Callable[[Prompt], Claim | None], told: bool, lands: bool
) -> None:
    """CP34, I5: the lease is taken again with the record, unless another worker has the turn; where the keeper told of
    its loss first, the turn is given back."""
    prompt = site.starts(ann, says(LONG, call("report.write", name="q")), says("Done."))
    held, again = taken(prompt), list[Claim]()
    other: list[Claim | None] = []

    def there_is_space() -> None:
        pragma("max_page_count = 1073741823")
        other.append(meanwhile(prompt))

    async def run() -> None:
        runner = Runner(
            held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: bool(again), hold=again.append
        )
        turn = asyncio.create_task(runner())
        while not disk.is_short():
            assert not turn.done()
            await asyncio.sleep(0.01)
        if told:
            runner.stop(Draining())
        await in_this_thread(there_is_space)
        await turn

    with full():
        async_to_sync(run)()
    prompt.refresh_from_db()
    state = "completed" if lands and not told else "running"
    said_it = prompt.steps.filter(type="text", path="1").count()
    assert (prompt.state, said_it, len(again)) == (state, int(lands), int(lands))
    assert verify(prompt.conversation_id).problems == []
    assert site.world.done == ([("report.write", "q")] if state == "completed" else [])
    if lands:
        assert (prompt.lease_until, prompt.fence) == (0, 1)  # done with, or given back
        assert again[0].at > held.at
    elif other[0]:
        assert prompt.fence == other[0].fence == 2
    else:
        assert prompt.lease_until == 1


@pytest.mark.django_db
def test_a_tool_whose_file_cannot_be_kept_says_so(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP34: the model reads that the tool ran, and that the disk is full; the turn goes on."""

    def fails(*args: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("django.core.files.storage.FileSystemStorage._save", fails)
    prompt = site.runs(ann, says("A file.", call("report.write", name="q")), says("Done."))
    result = prompt.steps.get(path="1/0", type="action_result").content
    assert (prompt.state, result["code"]) == ("completed", "not_kept")
    why = "The site's disk is full: a.txt was not stored."
    assert result["message"] == f"It ran, but its result could not be saved. {why}"
    assert not File.objects.exists()


@sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("at", ["a record", "the end"])
def test_waiting_for_space_is_no_running_time(ann: User, site: Site, settings: Any, at: str) -> None:
    """CP34: a turn that waited for longer than it may run goes on and ends well; its row counts no more than it ran."""
    settings.AGENTSITE_TURN_SECONDS = limit = 6.0
    rounds = [says(LONG, call("report.write", name="q")), says("Done.")] if at == "a record" else [says(LONG)]
    prompt = site.starts(ann, *rounds)
    held, began = taken(prompt), time.monotonic()

    async def run() -> None:
        turn = asyncio.create_task(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True)())
        while not disk.is_short() or time.monotonic() < began + limit + 0.5:
            assert not turn.done()
            await asyncio.sleep(0.01)
        await in_this_thread(pragma, "max_page_count = 1073741823")
        await turn

    with full():
        async_to_sync(run)()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("completed", "text")
    assert 0 <= prompt.running_seconds < limit / 2
    assert verify(prompt.conversation_id).problems == []


@sqlite
@pytest.mark.django_db(transaction=True)
def test_a_message_that_cannot_be_stored_is_refused_with_its_text_kept(client: Client, ann: User) -> None:
    """CP34: 507 and a sentence; the page tells of the disk; sent again when there is space, it is taken."""
    conversation = start_conversation(ann)
    client.force_login(ann)
    program = with_key(ann)
    address = re.findall(r'id="composer"[^>]*action="([^"]+)"', client.get(f"/c/{conversation.pk}/").text)[0]
    with full():
        answer = client.post(address, {"input": LONG})
        assert answer.status_code == 507
        assert LONG.strip() in answer.text
        assert "The site&#x27;s disk is full" in answer.text
        assert "turns are on hold" in client.get(f"/c/{conversation.pk}/").text
        assert said(program.post(f"/api/conversations/{conversation.pk}/prompts/", {"input": LONG}), 507) == "disk_full"
        health = client.get("/healthz")
        assert (health.status_code, health.json()["disk"]) == (503, "full")
    assert not Prompt.objects.exists()
    assert client.post(address, {"input": LONG}).status_code in (200, 302)
    assert "turns are on hold" not in client.get(f"/c/{conversation.pk}/").text
    assert Prompt.objects.get().input == LONG.strip()
