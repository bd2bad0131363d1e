"""Pending files: kept until a run takes them, for a day, within their owner's storage, and gone with the person."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone

from conversations.erasure.people import erase_user
from conversations.files import pending, storage
from conversations.files.pending import KEPT, PENDING_MOST, discard, find, keep, sweep
from conversations.files.uploads import BadFile, Upload
from conversations.models import PendingFile, Quota
from conversations.prompts.start import begin_conversation
from conversations.usage.storage import MB, used
from tests.conversations.recorded import at_once, lies_there

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> None:
    """Folders of this test's own."""
    settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES = tmp_path / "files", tmp_path / "workspaces"


def sent(name: str = "sales.csv", content: bytes = b"1,2\n3,4\n") -> Upload:
    return Upload.of(SimpleUploadedFile(name, content, "text/csv"))


def stored() -> list[Path]:
    """All contents in the storage."""
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def aged(row: PendingFile, ago: timedelta) -> PendingFile:
    """As if it had been uploaded so long ago."""
    then = timezone.now() - ago
    os.utime(row.content.path, (then.timestamp(), then.timestamp()))
    PendingFile.objects.filter(pk=row.pk).update(created_at=then)
    return row


def test_it_is_found_by_its_owner_alone(ann: User, bob: User) -> None:
    row = keep(ann, sent())
    assert len(row.token) >= 32
    assert keep(ann, sent()).token != row.token
    found = find(ann, row.token)
    assert found
    assert (found.name, found.media_type, found.content.read()) == ("sales.csv", "text/csv", b"1,2\n3,4\n")
    found.content.close()
    assert (find(bob, row.token), discard(bob, row.token)) == (None, False)
    assert discard(ann, row.token)
    assert (find(ann, row.token), discard(ann, row.token), len(stored())) == (None, False, 1)


def test_a_file_of_a_conversation_is_found_by_its_id(ann: User, bob: User) -> None:
    file = begin_conversation(ann, "Hi.", files=[sent()]).files.get()
    found = find(ann, f"file:{file.pk}")
    assert found
    assert (found.name, found.pending, find(bob, f"file:{file.pk}")) == ("sales.csv", None, None)
    assert not discard(ann, f"file:{file.pk}")
    assert lies_there(file.content)


def test_what_is_refused_leaves_nothing(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    Quota.objects.create(user=ann, storage_mb=1)
    with pytest.raises(BadFile, match=r"sales\.csv is empty"):
        keep(ann, sent(content=b""))
    with pytest.raises(BadFile, match=r"sales\.csv was not stored: your files take 0 bytes of the 1 MB"):
        keep(ann, sent(content=b"x" * (MB + 1)))
    monkeypatch.setattr(pending, "PENDING_MOST", 0)
    with pytest.raises(BadFile, match="0 files that you uploaded wait for a run"):
        keep(ann, sent())
    monkeypatch.setattr(pending, "PENDING_MOST", PENDING_MOST)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    with pytest.raises(BadFile, match="deactivated"):
        keep(ann, sent())
    assert (PendingFile.objects.count(), stored()) == (0, [])


def test_it_counts_as_its_owners_storage(ann: User, bob: User) -> None:
    keep(ann, sent())
    assert (used(ann.pk), used(bob.pk)) == (8, 0)


def test_uploads_at_once_stay_within_the_quota(ann: User) -> None:
    """Each would fit, and not both."""
    Quota.objects.create(user=ann, storage_mb=1)
    came_to = at_once(*[lambda: keep(ann, sent(content=b"x" * (MB // 2 + 1)))] * 4)
    assert sorted(type(each).__name__ for each in came_to) == ["BadFile"] * 3 + ["PendingFile"]
    assert (PendingFile.objects.count(), len(stored())) == (1, 1)


def test_the_same_token_at_once_is_one_file(ann: User) -> None:
    came_to = at_once(*[lambda: keep(ann, sent(), "t" * 64)] * 5)
    assert list(came_to) == [PendingFile.objects.get()] * 5
    assert len(stored()) == 1


def test_it_goes_when_no_run_has_taken_it_for_a_day(ann: User) -> None:
    young, old = (
        aged(keep(ann, sent()), KEPT - timedelta(minutes=5)),
        aged(keep(ann, sent()), KEPT + timedelta(minutes=5)),
    )
    looks: list[None] = []
    assert sweep(lambda: looks.append(None)) == 1
    assert (list(PendingFile.objects.all()), lies_there(young.content), lies_there(old.content)) == (
        [young],
        True,
        False,
    )
    assert looks == [None]
    assert find(ann, old.token) is None


def test_the_sweep_of_contents_leaves_it_alone(ann: User) -> None:
    """However old it is: its row says that it is wanted."""
    row = aged(keep(ann, sent()), timedelta(days=9))
    begin_conversation(ann, "Hi.", files=[sent("b.csv")])
    assert storage.sweep() == 0
    assert lies_there(row.content)
    PendingFile.objects.all().delete()  # as a process does that dies before it removes the content
    assert storage.sweep() == 1
    assert not lies_there(row.content)


def test_it_goes_with_the_person(ann: User, bob: User) -> None:
    keep(ann, sent())
    theirs = keep(bob, sent())
    erase_user(ann, bob)
    assert (list(PendingFile.objects.all()), len(stored())) == ([theirs], 1)


def test_its_content_is_on_the_disk_before_its_row(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is written while the database is locked."""
    flushed: list[tuple[int, bool]] = []
    flush = os.fsync

    def told(descriptor: int) -> None:
        flushed.append((PendingFile.objects.count(), connection.in_atomic_block))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    keep(ann, sent())
    assert flushed
    assert set(flushed) == {(0, False)}
