"""Workspaces nested deeper than Python recurses, and folders that nobody may enter: an erasure removes them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from conversations.backup.exchange import Exchange
from conversations.erasure.conversations import left_behind, sweep
from conversations.files import removal
from conversations.files.removal import remove_tree
from conversations.files.workspaces import clear
from conversations.models import Conversation, Erasure
from conversations.prompts.start import start_conversation
from tests.conversations.support import person

pytestmark = pytest.mark.django_db(transaction=True)
LEVELS = 1200
"""More than Python recurses."""


@pytest.fixture
def ann(settings: Settings, tmp_path: Path) -> User:
    settings.AGENTSITE_WORKSPACES = tmp_path / "workspaces"
    settings.AGENTSITE_WORKSPACES.mkdir()
    return person("ann")


def workspace(ann: User, settings: Settings) -> tuple[Conversation, Path]:
    conversation = start_conversation(ann)
    folder = Path(settings.AGENTSITE_WORKSPACES) / str(conversation.pk)
    folder.mkdir()
    return conversation, folder


def nest(folder: Path, levels: int, mode: int = 0o700) -> None:
    """Folders in one another, each with a file beside the next, all with these rights, and an empty one at the top."""
    (folder / "empty").mkdir(mode)
    here = os.open(folder, os.O_PATH)
    for _ in range(levels):
        os.mkdir("deeper", dir_fd=here)
        os.close(os.open("secret", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        below = os.open("deeper", os.O_PATH, dir_fd=here)
        Path(f"/proc/self/fd/{here}").chmod(mode)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.usefixtures("plain_rights")
@pytest.mark.parametrize("mode", [0o700, 0])
def test_an_erasure_removes_what_is_nested_without_end(ann: User, settings: Settings, mode: int) -> None:
    """More than a thousand levels were left, and the erasure said that it was done."""
    conversation, folder = workspace(ann, settings)
    nest(folder, 2500, mode)
    call_command("erase", str(conversation.pk), by="ann", reason="Asked by mail.")
    assert Erasure.objects.get().conversation_id == conversation.pk
    assert not list(folder.parent.iterdir())


@pytest.mark.usefixtures("plain_rights")
def test_so_do_the_erasure_of_a_person_and_the_night(ann: User, settings: Settings) -> None:
    (first, folder), (_second, other) = workspace(ann, settings), workspace(ann, settings)
    nest(folder, LEVELS, 0o500)
    nest(other, 40, 0o300)
    call_command("erase_user", "ann", by=person("chief").username, reason="Left.")
    assert not list(folder.parent.iterdir())
    folder.mkdir()
    nest(folder, LEVELS)
    assert (left_behind(), sweep()) == ({first.pk}, 1)
    assert not list(folder.parent.iterdir())


def test_a_conversation_does_not_begin_with_what_another_left(ann: User, settings: Settings) -> None:
    """Its process was killed, and the id is used again."""
    *_, last = (start_conversation(ann) for _ in range(2))
    folder = Path(settings.AGENTSITE_WORKSPACES) / str(last.pk)
    folder.mkdir()
    nest(folder, LEVELS)
    clear(last.pk)
    assert not folder.exists()


def test_a_restore_leaves_nothing_of_what_it_replaced(tmp_path: Path) -> None:
    folder, new = tmp_path / "folder", tmp_path / "new"
    (folder / "7").mkdir(parents=True)
    (new / "8").mkdir(parents=True)
    nest(folder / "7", LEVELS)
    exchange = Exchange(folder, new)
    exchange.stage()
    exchange.swap()
    exchange.clean()
    assert [path.name for path in folder.iterdir()] == ["8"]


def test_no_link_is_followed_and_nothing_is_removed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a command makes a link of a folder, or moves one away, while it is being removed."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (outside / "keep").mkdir(parents=True)
    (outside / "keep" / "file").touch()
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "swapped").mkdir()
    (folder / "link").symlink_to(outside)
    entries = removal._entries

    def meddled(descriptor: int, mode: int) -> list[tuple[str, bool]]:
        found = entries(descriptor, mode)
        if ("swapped", True) in found:
            (folder / "swapped").rmdir()
            (folder / "swapped").symlink_to(outside)
        if ("c", True) in found:
            (folder / "a" / "b").rename(outside / "keep" / "b")
            (outside / "keep" / "a").mkdir()
        return found

    monkeypatch.setattr(removal, "_entries", meddled)
    remove_tree(folder)
    assert not folder.exists()
    assert sorted(path.name for path in (outside / "keep").iterdir()) == ["a", "b", "file"]


def test_what_cannot_be_removed_is_said(
    ann: User, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the command, which fails, and in the log; all else is removed."""
    conversation, folder = workspace(ann, settings)
    (folder / "a" / "b").mkdir(parents=True)
    for place in (folder / "a" / "file", folder / "a" / "b" / "file", folder / "a" / "b" / "fixed"):
        place.touch()
    unlink = os.unlink

    def refused(name: str, *, dir_fd: int) -> None:
        if name == "fixed":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr("conversations.files.removal.os.unlink", refused)
    with pytest.raises(CommandError, match=f"workspace {conversation.pk} could not be removed completely"):
        call_command("erase", str(conversation.pk), by="ann", reason="Asked by mail.")
    assert [path.name for path in sorted(folder.rglob("*"))] == ["a", "b", "fixed"]
    assert "'fixed', 3 levels down: Operation not permitted" in caplog.text
    assert not Conversation.objects.exists()
