"""Backups of files that are larger than any disk, and archives that bring programs of their own."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from pytest_django.fixtures import Settings

from agents.plugins.files.usage import Usage, measure
from conversations.backup import databases
from conversations.backup.folders import HOLES_MOST, WORKSPACES, Walk
from conversations.backup.work import back_up, restore
from conversations.prompts.start import start_conversation
from conversations.verification.all import SCHEDULE, ensure_schedule
from tests.agentsite.processes import free_port
from tests.conversations.support import person

pytestmark = pytest.mark.django_db(transaction=True)
TB = 2**40


@pytest.fixture
def workspace(settings: Settings, tmp_path: Path) -> Path:
    """The folder of a conversation, on a site of its own."""
    for name, place in {"AGENTSITE_DATA": "", "MEDIA_ROOT": "files", "AGENTSITE_WORKSPACES": "workspaces"}.items():
        (tmp_path / "site" / place).mkdir(exist_ok=True)
        setattr(settings, name, tmp_path / "site" / place)
    settings.PORT = free_port()
    folder = Path(settings.AGENTSITE_WORKSPACES) / str(start_conversation(person("ann")).pk)
    folder.mkdir()
    return folder


def sparse(path: Path, size: int, content: bytes = b"") -> None:
    """Make a file of this size with a hole after its content."""
    path.write_bytes(content)
    os.truncate(path, size)


def test_a_file_that_is_nearly_all_hole_is_left_out_and_named(workspace: Path, tmp_path: Path) -> None:
    """A terabyte of nothing, which would be written as zeros; small holes are archived as what they read as."""
    sparse(workspace / "huge", TB, b"x" * 100_000)
    sparse(workspace / "small", 200_000, b"y" * 100_000)
    manifest = back_up(tmp_path / "backup.tar.gz")
    (unread,) = manifest.unread
    assert unread.startswith(f"{WORKSPACES}/{workspace.name}/huge: ")
    assert "1,024 GB of it" in unread
    assert manifest.members[f"{WORKSPACES}/{workspace.name}/small"][0] == 200_000
    (workspace / "small").unlink()
    assert not restore(tmp_path / "backup.tar.gz", force=True).left_out
    assert (workspace / "small").read_bytes() == b"y" * 100_000 + bytes(100_000)


def test_many_holes_are_no_more_than_one(tmp_path: Path) -> None:
    """Their sum has the limit: a thousand files of half of it would be as bad."""
    for number in range(5):
        sparse(tmp_path / f"file{number}", HOLES_MOST // 2)
    walk = Walk()
    assert len([entry for entry, _ in walk.below(tmp_path, WORKSPACES)]) == 2
    assert len(walk.unread) == 3


def test_a_file_that_grows_while_it_is_read_is_cut(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was when it was opened: what is added may have no end."""
    (workspace / "log").write_bytes(b"1" * 1000)
    file = Walk._file

    def grows(walk: Walk, path: Path, above: int) -> object:
        for entry in file(walk, path, above):  # type: ignore[arg-type]
            os.truncate(workspace / "log", 10_000_000)
            yield entry

    monkeypatch.setattr(Walk, "_file", grows)
    manifest = back_up(tmp_path / "backup.tar.gz")
    assert manifest.members[f"{WORKSPACES}/{workspace.name}/log"][0] == 1000
    with tarfile.open(tmp_path / "backup.tar.gz") as tar:
        assert tar.getmember(f"{WORKSPACES}/{workspace.name}/log").size == 1000


def test_holes_count_in_a_workspace(tmp_path: Path) -> None:
    """A file counts with the bytes that whoever reads or copies it gets."""
    sparse(tmp_path / "huge", TB)
    (tmp_path / "full").write_bytes(b"x" * 10_000)
    *_, found = measure(str(tmp_path))
    assert isinstance(found, Usage)
    assert TB + 10_000 <= found.bytes < TB + 100_000


def test_an_archive_brings_no_tasks(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They name functions to call. Those of the site itself are there again, and nothing is in between."""
    ensure_schedule()
    Schedule.objects.filter(name=SCHEDULE).update(func="os.system", args="'touch /tmp/owned'")
    Schedule.objects.create(name="mine", func="os.system", args="'id'", schedule_type=Schedule.MINUTES)
    OrmQ.objects.create(key="agentsite", payload="pickled", lock=timezone.now())
    back_up(tmp_path / "backup.tar.gz")
    seen: list[int] = []
    swap = databases.restore

    def looked(source: Path) -> None:
        swap(source)
        seen.append(Schedule.objects.count() + OrmQ.objects.count())

    monkeypatch.setattr(databases, "restore", looked)
    restore(tmp_path / "backup.tar.gz", force=True)
    assert seen == [0]
    assert OrmQ.objects.count() == 0
    (kept,) = Schedule.objects.all()
    assert kept.name == SCHEDULE
    assert kept.func.startswith("conversations.")
    assert not kept.args
    assert User.objects.filter(username="ann").exists()
