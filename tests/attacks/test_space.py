"""Space: commands, files and uploads that would fill the disk end at the quota of the workspace, or of the person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.engine.interfaces.services import Space
from agents.engine.tools.tool import Tool, ToolCall, tool
from agents.plugins.files.tools import edit_file, write_file
from agents.plugins.shell.tools import run
from conversations.erasure.conversations import erase
from conversations.files.workspaces import folder_of
from conversations.models import Conversation, File, Output, Prompt, Quota
from conversations.prompts.start import start_conversation
from conversations.usage import storage
from conversations.usage.storage import MB
from conversations.worker.kept import Kept
from conversations.worker.loading import load
from tests.api.client import error_of, with_key
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.cast import Name
from tests.engine.support import call, says
from tests.plugins.calls import Desk

pytestmark = pytest.mark.django_db

DONE = (says("Done."),)


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> None:
    """A data folder of this test's own."""
    settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES = tmp_path / "files", tmp_path / "workspaces"


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)


def csv(size: int) -> SimpleUploadedFile:
    return SimpleUploadedFile("sales.csv", b"1" * size, "text/csv")


@pytest.mark.parametrize("space", [Space(bytes=4 * MB), Space(left=4 * MB)], ids=["workspace", "person"])
async def test_a_command_ends_when_the_space_is_used_up(desk: Desk, space: Space) -> None:
    desk.services.most = space
    result = await desk.call(run, command="head -c 40000000 /dev/urandom > big; sync; sleep 100", timeout_seconds=60)
    assert result["note"].startswith("Ended: its folder grew beyond 4 MB")
    assert "note" not in await desk.call(run, command="rm big && sleep 0.6")


@pytest.mark.parametrize("space", [Space(bytes=MB), Space(left=MB)], ids=["workspace", "person"])
async def test_a_file_is_not_written_where_the_space_is_used_up(desk: Desk, space: Space) -> None:
    """But what shrinks may always be written."""
    (desk.workspace / "old.txt").write_text("old\n" * MB)
    desk.services.most = space
    for payload in ({"path": "new.txt", "content": "x"}, {"path": "old.txt", "content": "old\n" * (MB + 1)}):
        error = await desk.refused(write_file, **payload)
        assert error.code == "no_space"
        assert "Remove files" in error.message
    assert sorted(path.name for path in desk.workspace.iterdir()) == ["old.txt"]
    await desk.call(write_file, path="old.txt", content="old")
    await desk.call(edit_file, path="old.txt", old="old", new="new")


async def test_nor_one_file_more_than_may_be(desk: Desk) -> None:
    (desk.workspace / "old.txt").write_text("old")
    desk.services.most = Space(files=1)
    assert "1 files, which is the limit" in (await desk.refused(write_file, path="new.txt", content="x")).message
    await desk.call(write_file, path="old.txt", content="older")


@pytest.mark.parametrize("limited", ["person", "workspace"])
def test_an_upload_beyond_the_quota_says_so_and_keeps_the_text(
    client: Client, ann: User, settings: Any, limited: str
) -> None:
    if limited == "person":
        Quota.objects.create(user=ann, storage_mb=1)
        why = "of the 1 MB that you may use. Delete conversations"
    else:
        settings.AGENTSITE_WORKSPACE_MB = 1
        why = "the workspace of this conversation may hold 1 MB"
    conversation = start_conversation(ann)
    Conversation.objects.filter(pk=conversation.pk).update(workspace_bytes=MB - 1000)
    client.force_login(ann)
    page = client.post(f"/c/{conversation.pk}/prompts/", {"input": "Sum up.", "files": [csv(2000)]})
    assert page.status_code == 400
    assert why in page.text
    assert "Sum up.</textarea>" in page.text
    address = f"/api/conversations/{conversation.pk}/prompts/"
    error = error_of(with_key(ann).send(address, {"input": "Sum up.", "files": [csv(2000)]}), 400)
    assert why in str(error)
    assert (Prompt.objects.count(), File.objects.count()) == (0, 0)
    assert not [path for path in Path(settings.AGENTSITE_WORKSPACES).rglob("*") if path.is_file()]
    assert not [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def test_a_file_that_a_tool_makes_counts(site: Site, ann: User) -> None:
    """The agent is told, and the call has happened: it must not be taken for one that failed."""

    @tool("save", approval=False)
    async def save(call: ToolCall[Name]) -> str:
        call.file("big.bin", b"1" * MB, media_type="application/octet-stream", summary="Big.")
        return "saved"

    def tools() -> list[Tool]:
        return [save]

    site.monkeypatch.setattr(site.world, "tools", tools)
    Quota.objects.create(user=ann, storage_mb=2)
    prompt = site.runs(ann, *[says("x", call("save", name=name)) for name in ("a", "b", "c")], *DONE)
    results = [row.content["result"] for row in Output.objects.filter(prompt=prompt, type="tool").order_by("position")]
    assert [result["type"] for result in results] == ["success", "success", "error"]
    assert results[-1]["error"]["code"] == "not_kept"
    assert "2 MB of the 2 MB that you may use" in results[-1]["error"]["message"]
    assert storage.used(ann.pk) == 2 * MB


def test_what_a_workspace_holds_is_measured_after_each_run_and_freed_with_it(
    site: Site, ann: User, client: Client
) -> None:
    @tool("fill", approval=False)
    def fill(call: ToolCall[Name]) -> str:
        (call.services.workspace() / call.input.name).write_bytes(b"1" * 3 * MB)
        return "filled"

    def tools() -> list[Tool]:
        return [fill]

    site.monkeypatch.setattr(site.world, "tools", tools)
    prompt = site.runs(ann, says("x", call("fill", name="a")), *DONE)
    conversation = prompt.conversation
    assert 3 * MB <= storage.used(ann.pk) < 4 * MB
    assert storage.workspace_space(conversation.pk, ann.pk).left == storage.limit(ann.pk)
    Quota.objects.create(user=ann, storage_mb=5)
    other = start_conversation(ann)
    assert MB < (storage.workspace_space(other.pk, ann.pk).left or 0) < 2 * MB + 1
    client.force_login(ann)
    assert "3.0\xa0MB</strong>" in client.get("/account/").text
    told = with_key(ann).get("/api/usage/").json()
    assert (told["storage_bytes"] >= 3 * MB, told["quota"]["storage_bytes"]) == (True, 5 * MB)
    erase(conversation, ann)
    assert storage.used(ann.pk) == 0
    assert not (folder_of(other.pk) / "a").exists()


def test_a_workspace_that_has_just_grown_gets_no_more_room_by_that(site: Site, ann: User) -> None:
    """The total of all files may be some seconds old, and lack what the workspace holds by now."""
    Quota.objects.create(user=ann, storage_mb=5)
    Conversation.objects.filter(pk=start_conversation(ann).pk).update(workspace_bytes=MB)
    prompt, kept = site.starts(ann, *DONE), Kept()
    assert load(prompt.pk, kept).space.left == 4 * MB
    Conversation.objects.filter(pk=prompt.conversation_id).update(workspace_bytes=3 * MB)
    assert load(prompt.pk, kept).space.left == 4 * MB


def test_people_do_not_pay_for_others(ann: User) -> None:
    Conversation.objects.filter(pk=start_conversation(person("kim")).pk).update(workspace_bytes=MB)
    assert storage.used(ann.pk) == 0
