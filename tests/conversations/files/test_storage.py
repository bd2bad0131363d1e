"""Contents of files: durable before their rows are stored, and swept if no row or step follows (CP22)."""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations.erasure import conversations as erasure
from conversations.files.storage import GRACE, ORPHANS_MOST, store, sweep
from conversations.models import Conversation, File, Prompt
from conversations.prompts.start import start_conversation
from conversations.verification.stored import verify
from conversations.worker import hosts, tasks
from tests.conversations.recorded import MIXED, ONE_GATE, Site, lies_there, meddle

pytestmark = pytest.mark.django_db
OLD = GRACE + timedelta(hours=1)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """A folder of this test's own."""
    settings.MEDIA_ROOT = tmp_path / "files"
    return tmp_path / "files"


@pytest.fixture
def prompt(ann: User, site: Site) -> Prompt:
    """A turn that made a file."""
    return site.ended(ann, *MIXED)


def stored(content: bytes, conversation: Conversation | None = None) -> File:
    """A content, and its row where a conversation is given, as a worker leaves them that dies before its record."""
    row = File(conversation=conversation, name="a.txt", media_type="text/plain", size=len(content))
    row.sha256 = hashlib.sha256(content).hexdigest()
    store(row, ContentFile(content))
    if conversation:
        row.save()
    return row


def aged(row: File, ago: timedelta = OLD) -> File:
    """As if it had been stored so long ago."""
    then = timezone.now() - ago
    os.utime(row.content.path, (then.timestamp(), then.timestamp()))
    File.objects.filter(pk=row.pk).update(created_at=then)
    return row


def test_a_content_is_on_the_disk_before_its_row_is_stored(
    ann: User, site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP40: the file, and the names of it and of its folders; what a database has committed names nothing less."""
    flushed: list[tuple[str, bool]] = []
    flush = os.fsync

    def told(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(folder):
            flushed.append((str(path.relative_to(folder)), File.objects.exists()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    site.ended(ann, *MIXED)
    month, digest = str(File.objects.get().content.name).rsplit("/", 1)
    named = [f"{month}/{digest}", month, month.partition("/")[0], "."]
    assert flushed == [(path, False) for path in named]


def test_what_is_named_stays_however_old_it_is(prompt: Prompt) -> None:
    row = aged(File.objects.get())
    assert sweep() == 0
    assert lies_there(row.content)
    assert verify(prompt.conversation_id).problems == []


def test_a_content_without_a_row_goes_once_it_is_old(ann: User) -> None:
    """Two of the same content have names of their own, and go by themselves."""
    kept, left = stored(b"same", start_conversation(ann)), stored(b"same")
    assert kept.content.name != left.content.name
    assert sweep() == 0, "its row may still come"
    aged(left)
    assert sweep() == 1
    assert not lies_there(left.content)
    assert lies_there(kept.content)


def test_a_row_that_no_step_names_goes_with_its_content(prompt: Prompt) -> None:
    named, left = aged(File.objects.get()), aged(stored(b"never recorded", prompt.conversation))
    young = stored(b"of now", prompt.conversation)
    assert sweep() == 1
    assert set(File.objects.all()) == {named, young}
    assert not lies_there(left.content)
    assert lies_there(young.content)


def test_nothing_of_a_turn_that_is_under_way_goes(ann: User, site: Site) -> None:
    """It waits for longer than the grace, and could still record what it stored."""
    waiting = site.runs(ann, *ONE_GATE)
    row = aged(stored(b"about to be recorded", waiting.conversation))
    assert sweep() == 0
    assert lies_there(row.content)
    while site.approves(waiting, ann):
        site.works()
    assert sweep() == 1
    assert not File.objects.exists()


def test_what_was_given_stays_though_no_step_of_its_kind_names_it(prompt: Prompt) -> None:
    row = stored(b"given", prompt.conversation)
    File.objects.filter(pk=row.pk).update(prompt=prompt)
    aged(row)
    assert sweep() == 0
    assert lies_there(row.content)


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_a_folder_of_another_database_is_left_alone(ann: User, caplog: pytest.LogCaptureFixture, rows: int) -> None:
    """The site was started over the wrong database: what that does not know is much, and stays."""
    conversation = start_conversation(ann)
    File.objects.bulk_create(
        File(conversation=conversation, name="a", content=f"2020/01/{n}", size=1, prompt=None) for n in range(rows)
    )
    left = [aged(stored(b"%d" % n)) for n in range(ORPHANS_MOST + bool(rows) if rows else 1)]
    assert sweep() == 0
    assert all(lies_there(row.content) for row in left)
    assert "Is this the right database for this folder?" in caplog.text
    if rows:
        left[0].content.delete(save=False)
        assert sweep() == ORPHANS_MOST


@pytest.mark.parametrize("name", ["2026/05/notes.txt", "2026/05/deep/" + "a" * 64, "a" * 64, "2026/" + "a" * 64])
def test_what_is_not_ours_is_left_alone(folder: Path, name: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    os.utime(path, (0, 0))
    assert sweep() == 0
    assert path.exists()


def test_a_content_that_goes_meanwhile_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its conversation is erased while the sweep reads the folder."""
    left = aged(stored(b"erased"))
    glob = Path.glob

    def gone(self: Path, pattern: str) -> list[Path]:
        found = list(glob(self, pattern))
        left.content.delete(save=False)
        return found

    monkeypatch.setattr(Path, "glob", gone)
    assert sweep() == 0


@pytest.mark.usefixtures("prompt")
def test_a_sweep_that_breaks_off_keeps_no_other_from_its_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    """And all of it shows that it goes on."""
    settings.AGENTSITE_BEAT_SECONDS = 0.0
    left, beats = aged(stored(b"left")), list[str]()

    def broken(alive: object) -> int:
        raise OSError("no folder")

    monkeypatch.setattr(erasure, "sweep", broken)
    monkeypatch.setattr(hosts, "beat", beats.append)
    tasks.nightly()
    assert not lies_there(left.content)
    assert "a nightly sweep failed" in caplog.text
    assert len(beats) > Conversation.objects.count()


def test_the_night_sweeps_where_all_ledgers_are_good(prompt: Prompt) -> None:
    """A ledger that somebody changed may have named it."""
    left = aged(stored(b"left"))
    meddle("UPDATE conversations_prompt SET rounds = 7")
    tasks.nightly()
    assert lies_there(left.content)
    meddle("DELETE FROM conversations_verification")
    meddle("UPDATE conversations_prompt SET rounds = 2")
    tasks.nightly()
    assert not lies_there(left.content)
