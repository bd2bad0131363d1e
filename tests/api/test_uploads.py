"""Uploads over the API: a file that is sent first, and the run that takes it by its token."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from pydantic import BaseModel

from conversations.files.workspaces import folder_of
from conversations.models import PendingFile, Prompt
from conversations.usage.storage import MB
from tests.api.client import error_of, said, with_key
from tests.workflows import shop
from workflows import Flow, UploadedFile, workflow

pytestmark = pytest.mark.django_db
CONTENT = b"1,2\n3,4\n"
UPLOADS, RUN = "/api/uploads/", "/api/workflows/shop.read/run/"


class Table(BaseModel):
    table: UploadedFile


@workflow("shop.read", title="Read a table", category=shop.SHOP)
async def read(flow: Flow[Table]) -> str:
    """Reads a table."""
    return flow.input.table


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES = tmp_path / "files", tmp_path / "workspaces"
    settings.AGENTSITE_UPLOAD_MB = 1
    with shop.registered(monkeypatch, read):
        yield


def csv(name: str = "sales.csv", content: bytes = CONTENT) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, "text/csv")


def test_a_file_is_uploaded_and_given_by_its_token(ann: User) -> None:
    api = with_key(ann)
    answer = api.send(UPLOADS, {"file": csv()})
    upload = answer.json()
    assert (answer.status_code, upload["name"], upload["media_type"], upload["size"]) == (
        201,
        "sales.csv",
        "text/csv",
        8,
    )
    assert upload["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert api.get(UPLOADS).json()["results"] == [upload]
    given = {"parameters": {"table": upload["token"]}}
    run = api.post(RUN, given, Idempotency_Key="k")
    assert (run.status_code, run.json()["input"]) == (202, "/shop.read table=sales.csv")
    assert [file["name"] for file in run.json()["files"]] == ["sales.csv"]
    prompt = Prompt.objects.get(pk=run.json()["id"])
    assert (folder_of(prompt.conversation_id) / "sales.csv").read_bytes() == CONTENT
    assert api.get(UPLOADS).json()["results"] == []
    again = api.post(RUN, given, Idempotency_Key="k")
    assert (again.status_code, again.json()["id"]) == (202, prompt.pk)
    copy = api.post(RUN, {"parameters": {"table": f"file:{prompt.files.get().pk}"}})
    assert copy.json()["input"] == "/shop.read table=sales.csv"


def test_a_token_that_is_not_theirs_or_was_taken_starts_nothing(ann: User, bob: User) -> None:
    token = with_key(bob).send(UPLOADS, {"file": csv()}).json()["token"]
    api = with_key(ann)
    for given in (token, "none", "", "sales.csv", "../sales.csv", 7, None, ["a"]):
        answer = api.post(RUN, {"parameters": {"table": given}})
        assert said(answer, 400) == "invalid_input"
        assert list(error_of(answer, 400)["errors"]) == ["table"]
    assert said(api.client.delete(f"{UPLOADS}{token}/", headers=api._with_key({})), 404) == "not_found"
    assert (Prompt.objects.count(), PendingFile.objects.count()) == (0, 1)


def test_what_is_refused_says_why(ann: User) -> None:
    api = with_key(ann)
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"file": csv(content=b"")}, "file", "sales.csv is empty."),
        ({"file": csv(content=b"x" * (MB + 1))}, "file", "sales.csv is too large."),
        ({"file": "text"}, "file", "Send one file here"),
        ({"file": [csv(), csv()]}, "file", "Send one file here"),
        ({}, "file", "Send one file here"),
        ({"file": csv(), "more": csv()}, "more", "There is no such field."),
    ]
    for fields, name, why in wrong:
        assert error_of(api.send(UPLOADS, fields), 400)["fields"][name][0].startswith(why)
    for body in ({"file": "a"}, ["a"], [{"a": 1}], 7):
        assert said(api.post(UPLOADS, body), 400) == "invalid"
    assert PendingFile.objects.count() == 0


def test_a_key_uploads_what_it_may_start_workflows_with(ann: User) -> None:
    for scope in ("read", "chat", "passthrough"):
        assert said(with_key(ann, scope).send(UPLOADS, {"file": csv()}), 403) == "forbidden"
    api = with_key(ann, "workflows")
    token = api.send(UPLOADS, {"file": csv()}).json()["token"]
    assert said(with_key(ann, "chat").delete(f"{UPLOADS}{token}/"), 403) == "forbidden"
    assert api.delete(f"{UPLOADS}{token}/").status_code == 204
