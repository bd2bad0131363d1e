"""Uploads: stored, copied into the workspace and read by the model; or nothing of them is left."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.db import connection

from agents.engine.interfaces.messages import UserMessage
from agents.plugins.files.tools import read_file
from conversations.erasure.conversations import erase
from conversations.files.uploads import BadFile, Upload, clean_file_name, read_uploads
from conversations.files.workspaces import folder_of
from conversations.models import Conversation, File, Prompt
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.start import (
    TurnInProgress,
    begin_conversation,
    cancel_prompt,
    start_conversation,
    start_prompt,
)
from conversations.usage.storage import MB
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, at_once, lies_there, meddle
from tests.engine.cast import site as scripted
from tests.engine.support import call, results_in, says, seen

pytestmark = pytest.mark.django_db
SUM = "Sum this up."
LINE = "[Attached: sales.csv, 8 bytes. It lies in the workspace as sales.csv.]"


def sent(name: str = "sales.csv", content: bytes = b"1,2\n3,4\n", media_type: str = "text/csv") -> Upload:
    return Upload.of(SimpleUploadedFile(name, content, media_type))


def recorded(prompt: Prompt) -> dict[str, Any]:
    """What the turn's call says."""
    payload: dict[str, Any] = prompt.steps.get(path="", type="action_call").content["payload"]
    return payload


def stored() -> list[Path]:
    """All contents in the storage."""
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def copies() -> list[Path]:
    """All files in workspaces."""
    return [path for path in Path(settings.AGENTSITE_WORKSPACES).rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> None:
    """Folders of this test's own."""
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.AGENTSITE_WORKSPACES = tmp_path / "workspaces"


def test_a_file_becomes_part_of_the_record_and_of_the_workspace(ann: User) -> None:
    prompt = begin_conversation(ann, SUM, files=[sent(), sent("empty.txt", b"", "text/plain")])
    sales, empty = prompt.files.order_by("pk")
    assert (sales.name, sales.path, sales.media_type, sales.size) == ("sales.csv", "sales.csv", "text/csv", 8)
    assert (empty.name, empty.size, prompt.input) == ("empty.txt", 0, SUM)
    with sales.content.open() as content:
        assert content.read() == b"1,2\n3,4\n"
    assert (folder_of(prompt.conversation_id) / "sales.csv").read_bytes() == b"1,2\n3,4\n"
    assert (folder_of(prompt.conversation_id) / "empty.txt").read_bytes() == b""
    assert recorded(prompt)["files"] == [
        {"id": sales.pk, "name": "sales.csv", "size": 8, "path": "sales.csv"},
        {"id": empty.pk, "name": "empty.txt", "size": 0, "path": "empty.txt"},
    ]
    assert verify(prompt.conversation_id).problems == []


def test_without_files_a_turn_records_none(ann: User) -> None:
    assert "files" not in recorded(begin_conversation(ann, "Hi."))


def test_the_model_reads_of_a_file_in_this_turn_and_later_and_reads_it(
    ann: User, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """A real turn by the worker's runner: the line, the file itself through `files.read`, and the line in history."""
    script = [says("I read it.", call("files.read", path="sales.csv")), says("Four numbers."), says("Still four.")]
    registry, provider = scripted(script, [read_file])
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    first = begin_conversation(ann, SUM, files=[sent()])
    site.works()
    start_prompt(first.conversation, ann, "Sure?")
    site.works()
    now, after_reading, later = provider.asked
    assert seen(now) == [UserMessage(SUM, (LINE,))]
    assert "1,2" in results_in(after_reading)[0]
    assert seen(later)[0] == UserMessage(SUM, (LINE,))
    assert seen(later)[-1] == UserMessage("Sure?")
    assert verify(first.conversation_id).problems == []


def test_a_message_of_files_alone_is_told_by_their_names(ann: User, site: Site) -> None:
    """Nothing is made up that nobody said."""
    prompt = begin_conversation(ann, " ", files=[sent()])
    prompt.conversation.refresh_from_db()
    assert (prompt.input, prompt.conversation.title) == ("", "sales.csv")


def test_a_name_that_is_taken_gets_a_number(ann: User) -> None:
    prompt = begin_conversation(ann, SUM, files=[sent(), sent(content=b"other")])
    assert [(file.name, file.path) for file in prompt.files.order_by("pk")] == [
        ("sales.csv", "sales.csv"),
        ("sales.csv", "sales-2.csv"),
    ]
    assert (folder_of(prompt.conversation_id) / "sales-2.csv").read_bytes() == b"other"


def test_a_refused_message_leaves_nothing_of_its_files(ann: User) -> None:
    conversation = start_conversation(ann)
    start_prompt(conversation, ann, "First.")
    with pytest.raises(TurnInProgress):
        start_prompt(conversation, ann, SUM, files=[sent()])
    assert (File.objects.count(), stored(), copies()) == (0, [], [])


def test_files_that_cannot_be_copied_leave_nothing(ann: User, tmp_path: Path) -> None:
    """Nothing was started, and nothing was written through the link."""
    conversation = start_conversation(ann)
    outside = tmp_path / "outside"
    outside.mkdir()
    folder_of(conversation.pk).rmdir()
    (tmp_path / "workspaces" / str(conversation.pk)).symlink_to(outside)
    with pytest.raises(BadFile, match=r"sales\.csv could not be stored: .*Nothing was sent"):
        start_prompt(conversation, ann, SUM, files=[sent()])
    assert (Prompt.objects.count(), File.objects.count(), stored(), copies(), list(outside.iterdir())) == (
        (0, 0, [], [], [])
    )


def test_where_one_file_cannot_be_copied_those_before_it_are_taken_back(ann: User) -> None:
    conversation = start_conversation(ann)
    with pytest.raises(BadFile, match=r"contains '\.\.'"):
        start_prompt(conversation, ann, SUM, files=[sent(), replace(sent(), name="../x")])
    assert (Prompt.objects.count(), File.objects.count(), stored(), copies()) == (0, 0, [], [])


def test_what_cannot_be_taken_back_hides_no_error(
    ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged for each file, the last one first, and the others are taken back all the same."""

    def fails(self: Any, name: str) -> None:
        raise PermissionError(13, "Permission denied")

    conversation = start_conversation(ann)
    start_prompt(conversation, ann, "First.")
    monkeypatch.setattr("django.core.files.storage.FileSystemStorage.delete", fails)
    with pytest.raises(TurnInProgress):
        start_prompt(conversation, ann, SUM, files=[sent(), sent("b.csv")])
    assert copies() == []
    told = [record.getMessage() for record in caplog.records if "could not be removed" in record.message]
    assert [name in each for name, each in zip(("b.csv", "sales.csv"), told, strict=True)] == [True, True]


@pytest.mark.django_db(transaction=True)
def test_nothing_is_copied_while_the_database_is_locked(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file takes longer than the rest of the site waits for the lock."""
    written, fsync = [], os.fsync

    def watched(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            written.append((os.fstat(descriptor).st_size, connection.in_atomic_block))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    begin_conversation(ann, SUM, files=[sent(), sent("b.csv", b"other")])
    assert written == [(8, False), (8, False), (5, False), (5, False)], "each content, and its copy"
    assert sorted(path.name for path in copies()) == ["b.csv", "sales.csv"]


def test_the_same_request_again_stores_nothing_twice(ann: User) -> None:
    first = begin_conversation(ann, SUM, key="k", files=[sent()])
    assert begin_conversation(ann, SUM, key="k", files=[sent()]) == first
    assert (File.objects.count(), len(stored()), len(copies())) == (1, 1, 1)
    for other in ([], [sent(content=b"other")], [sent("other.csv")]):
        with pytest.raises(KeyReused):
            begin_conversation(ann, SUM, key="k", files=other)
    assert (Conversation.objects.count(), len(stored()), len(copies())) == (1, 1, 1)


@pytest.mark.django_db(transaction=True)
def test_the_same_request_five_times_at_once_is_taken_once(ann: User) -> None:
    came_to = at_once(*[lambda: begin_conversation(ann, SUM, key="k", files=[sent()])] * 5)
    begun = [one for one in came_to if isinstance(one, Prompt)]
    assert (len(begun), len({prompt.pk for prompt in begun})) == (5, 1)
    assert (File.objects.count(), len(stored()), len(copies())) == (1, 1, 1)
    assert verify(begun[0].conversation_id).problems == []


def test_a_new_conversation_finds_no_files_of_one_that_never_was(ann: User, bob: User) -> None:
    """SQLite gives an id anew when the transaction that took it did not come to its end."""
    theirs = begin_conversation(bob, "Mine.").conversation_id
    (folder_of(theirs + 1) / "secret.txt").write_text("bob's")
    mine = begin_conversation(ann, SUM, files=[sent()]).conversation_id
    assert mine == theirs + 1
    assert [path.name for path in folder_of(mine).iterdir()] == ["sales.csv"]
    (folder_of(mine + 1) / "secret.txt").write_text("bob's")
    empty = start_conversation(ann).pk  # as the API does it
    assert (empty, list(folder_of(empty).iterdir())) == (mine + 1, [])


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("plan.md", "plan.md"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\temp\\a.txt", "C:_temp_a.txt"),
        (".bashrc", "bashrc"),
        ("...", "file"),
        ("", "file"),
        ("  a  b.txt ", "a  b.txt"),
        ("a\x00b\nc\u202etxt.exe", "abctxt.exe"),
        ("u\u0308ber.txt", "\u00fcber.txt"),
        ("\u00e9" * 150 + ".tar.gz", "\u00e9" * 98 + ".gz"),
        ("x" * 300, "x" * 200),
        ("x." + "y" * 300, "x." + "y" * 198),
    ],
)
def test_names_are_kept_as_they_can_be_seen(name: str, kept: str) -> None:
    assert clean_file_name(name) == kept
    assert len(kept.encode()) <= 200


def test_what_is_too_much_is_refused_by_name(settings: Any) -> None:
    settings.AGENTSITE_UPLOAD_MB = 1
    assert Upload.of(SimpleUploadedFile("fits.bin", b"x" * MB)).content.size == MB
    with pytest.raises(BadFile, match=r"big\.bin is too large\. A file can have up to 1 MB\."):
        read_uploads([SimpleUploadedFile("big.bin", b"x" * (MB + 1))])
    many: list[UploadedFile[bytes]] = [SimpleUploadedFile(f"{n}.txt", b"x") for n in range(11)]
    with pytest.raises(BadFile, match="You attached 11 files; a message can have 10"):
        read_uploads(many)
    assert len(read_uploads(many[:10])) == 10


@pytest.mark.parametrize("told", ["", "text/html; charset=x", "a/b\nX: y", "nonsense", "x/" + "y" * 200])
def test_a_kind_that_makes_no_sense_is_unknown(told: str) -> None:
    file = UploadedFile(BytesIO(b"x"), "a", told, 1)
    assert Upload.of(file).media_type == "application/octet-stream"


@pytest.mark.django_db(transaction=True)
def test_erasing_takes_them_all(ann: User) -> None:
    prompt = begin_conversation(ann, SUM, files=[sent()])
    content = prompt.files.get().content
    cancel_prompt(prompt.pk, ann)
    erase(prompt.conversation, ann)
    assert (File.objects.count(), lies_there(content), stored(), copies()) == (0, False, [], [])


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE conversations_file SET name = 'x.csv'", "differs from what the step says: name"),
        ("UPDATE conversations_file SET sha256 = 'x'", "is not what was stored"),
        ("DELETE FROM conversations_file", "is missing"),
    ],
)
def test_a_file_that_is_not_what_was_given_is_told(ann: User, sql: str, problem: str) -> None:
    """By `verify_ledger`."""
    prompt = begin_conversation(ann, SUM, files=[sent()])
    meddle(sql)
    (told,) = verify(prompt.conversation_id).problems
    assert problem in str(told)
