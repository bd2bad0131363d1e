"""Erasing a conversation: everything goes, and who did it stays."""

import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from agents.engine.errors import Fenced
from agents.engine.ledger import Step
from agents.models import SystemPrompt
from conversations.database import guard
from conversations.erasure.conversations import TurnRuns, erase
from conversations.erasure.steps import redact
from conversations.ledger.journal import append
from conversations.models import Conversation, Erasure, File, Output, Prompt, Snapshot
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation
from conversations.verification.stored import verify
from conversations.worker import tasks
from tests.conversations.recorded import LEASE, MIXED, ONE_GATE, Site, lies_there, meddle, place, record, said, taken
from tests.engine.support import says

NOBODY = 65534
pytestmark = pytest.mark.django_db(transaction=True)


def workspace(conversation: Conversation) -> Path:
    return Path(settings.AGENTSITE_WORKSPACES) / str(conversation.pk)


def test_everything_goes_and_its_trace_stays(ann: User, site: Site) -> None:
    """With the triggers up, on both databases; another conversation keeps all it has."""
    prompt, other = site.ended(ann, *MIXED), site.ended(ann, *MIXED)
    more = site.ended(ann, says("Unused."), says("More."), conversation=prompt.conversation)
    Prompt.objects.filter(pk=more.pk).update(continues=prompt)
    conversation = Conversation.objects.get(pk=prompt.conversation_id)
    content = File.objects.get(conversation=conversation).content
    workspace(conversation).mkdir(parents=True, exist_ok=True)
    (workspace(conversation) / "notes.txt").write_text("mine")
    assert guard.missing(connection) == []

    erasure = erase(conversation, ann, "They asked.")

    assert (erasure.erased_by, erasure.reason) == ("ann", "They asked.")
    assert (erasure.steps, erasure.head) == (conversation.seq, conversation.head)
    assert Erasure.objects.get() == erasure
    for model in (Output, Row, File, Prompt):
        assert {row.conversation_id for row in model.objects.all()} == {other.conversation_id}, model
    assert list(Conversation.objects.all()) == [other.conversation]
    assert not lies_there(content)
    assert not workspace(conversation).exists()
    assert lies_there(File.objects.get().content)
    assert verify(other.conversation_id).problems == []


def test_what_models_were_told_goes_where_no_other_conversation_was_told_the_same(ann: User, site: Site) -> None:
    """A plugin may have told it what was said; a step that was redacted keeps nothing of it."""
    pirate = SystemPrompt.create(name="Pirate", text="Talk like a pirate.")
    mine = site.ended(ann, says("Arr."), conversation=start_conversation(ann, system_prompt=pirate))
    first, second, third = (site.ended(ann, says("Hello.")) for _ in range(3))
    own, shared = (snapshot_of(prompt) for prompt in (mine, first))
    erase(mine.conversation, ann)
    assert list(Snapshot.objects.values_list("pk", flat=True)) == [shared] != [own]
    erase(first.conversation, ann)
    assert verify(second.conversation_id).problems == []
    redact(third.conversation, [1], ann, "Old.")
    erase(second.conversation, ann)
    assert not Snapshot.objects.exists()
    assert verify(third.conversation_id).problems == []


def snapshot_of(prompt: Prompt) -> str:
    return str(Row.objects.get(prompt=prompt, type="action_start", path="1").content["snapshot"])


@pytest.mark.postgres
def test_what_is_told_again_at_that_moment_stays(ann: User, site: Site) -> None:
    """A record that found it there is not committed yet when the erasure comes: it is waited for."""
    old, new = site.ended(ann, says("Hello.")), site.starts(ann, says("Hello."))
    text = Snapshot.objects.get(pk=snapshot_of(old)).text
    begun = Step("worker:1", "action_start", {"attempt": 1, "snapshot": snapshot_of(old)}, "1")
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            at = place(new)
            told = record(new, at, Step("runtime", "action_call", {"policy": "model", "payload": {}}, "1"), begun)
            append(at, replace(told, snapshots={snapshot_of(old): text}))
            erasing = threads.submit(erased, old.conversation, ann)
            while not meddle("SELECT 1 FROM pg_locks WHERE NOT granted"):
                assert not erasing.done()
        erasing.result(timeout=30)
    assert Snapshot.objects.get().text == text


def erased(conversation: Conversation, by: User) -> None:
    try:
        erase(conversation, by)
    finally:
        connection.close()


@pytest.fixture
def theirs(settings: Any) -> Iterator[Path]:
    """A folder for workspaces of a user whom file modes bind, as they do not bind root; the process is that user."""
    with TemporaryDirectory(prefix="agentsite-test-", dir="/tmp") as name:
        if root := os.geteuid() == 0:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            settings.AGENTSITE_WORKSPACES = Path(name)
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def test_a_folder_that_refuses_goes_too(ann: User, theirs: Path, settings: Any) -> None:
    """Go's module cache is read-only, and a command may close a folder altogether; what a link names stays."""
    outside = theirs / "outside"
    outside.mkdir(mode=0o555)
    conversation = start_conversation(ann)
    closed = workspace(conversation) / "go" / "mod"
    closed.mkdir(parents=True)
    (closed / "module.go").write_text("package mod")
    (closed / "out").symlink_to(outside)
    (closed / "shut").mkdir(mode=0)
    closed.chmod(0o555)
    closed.parent.chmod(0o500)
    erase(conversation, ann)
    assert list(theirs.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o555


def test_a_workspace_that_was_left_behind_goes_in_the_night(ann: User, settings: Any, tmp_path: Path) -> None:
    """Its process was killed between the commit and the removal; those of conversations that are there stay."""
    settings.AGENTSITE_WORKSPACES = tmp_path
    gone, stays = start_conversation(ann), start_conversation(ann)
    erase(gone, ann)
    for folder in (workspace(gone), workspace(stays), workspace(stays).parent / "other"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "notes.txt").write_text("mine")
    tasks.nightly()
    assert not workspace(gone).exists()
    assert (workspace(stays) / "notes.txt").read_text() == "mine"
    assert (workspace(stays).parent / "other").exists()


def test_a_turn_that_a_worker_holds_keeps_it(ann: User, site: Site) -> None:
    prompt = site.starts(ann, *ONE_GATE)
    taken(prompt)
    with pytest.raises(TurnRuns, match="Stop the turn"):
        erase(prompt.conversation, ann)
    assert (Row.objects.count(), Erasure.objects.count()) == (1, 0)


def test_a_worker_that_was_lost_or_comes_back_keeps_nothing(ann: User, site: Site) -> None:
    prompt = site.starts(ann, *ONE_GATE)
    held, at = taken(prompt), place(prompt)
    new = record(prompt, at, said())
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - %s", [LEASE + 1])
    erase(prompt.conversation, ann)
    with pytest.raises(Fenced), transaction.atomic():
        append(at, new, fence=held.fence)
    assert not Row.objects.exists()


def test_what_goes_wrong_leaves_everything(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and workspace too: they go once the rest is committed."""
    prompt = site.ended(ann, *MIXED)
    before, file = Row.objects.count(), File.objects.get()

    def fails(_: Conversation) -> None:
        raise IntegrityError("at the very end")

    monkeypatch.setattr(Conversation, "delete", fails)
    with pytest.raises(IntegrityError):
        erase(prompt.conversation, ann)
    assert (Row.objects.count(), Erasure.objects.count()) == (before, 0)
    assert lies_there(file.content)
    assert verify(prompt.conversation_id).problems == []


def test_the_command(ann: User, site: Site) -> None:
    prompt = site.ended(ann, says("Hello."))
    steps = Row.objects.count()
    out = io.StringIO()
    call_command("erase", str(prompt.conversation_id), by="ann", reason="Old.", stdout=out)
    assert out.getvalue() == f"Erased conversation {prompt.conversation_id}, with {steps} steps.\n"
    assert Erasure.objects.get().reason == "Old."


def test_the_command_refuses_and_says_why(ann: User, site: Site) -> None:
    prompt = site.starts(ann, says("Hello."))
    taken(prompt)
    for conversation, by, why in (
        (prompt.conversation_id, "nobody", "no user 'nobody'"),
        (10**6, "ann", "no conversation 1000000"),
        (prompt.conversation_id, "ann", "Stop the turn"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("erase", str(conversation), by=by, reason="Old.")
    assert Row.objects.exists()
