"""Files over the API: sent with a message as a form, listed with the prompt, downloaded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.models import Conversation, File, Prompt, State
from conversations.prompts.start import start_conversation
from conversations.usage.storage import MB
from tests.api.client import Api, error_of, said, with_key

pytestmark = pytest.mark.django_db
CONTENT = b"1,2\n3,4\n"


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> None:
    """A data folder of this test's own, and a small limit."""
    settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES = tmp_path / "files", tmp_path / "workspaces"
    settings.AGENTSITE_UPLOAD_MB = 1


@pytest.fixture
def prompts(ann: User) -> str:
    """The URL of the prompts of a conversation of Ann's."""
    return f"/api/conversations/{start_conversation(ann).pk}/prompts/"


def csv(name: str = "sales.csv", content: bytes = CONTENT) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, "text/csv")


def test_files_are_sent_as_a_form_and_told_with_the_prompt(ann: User, bob: User, prompts: str) -> None:
    api = with_key(ann)
    answer = api.send(prompts, {"input": "Sum up.", "model": "high", "files": [csv(), csv("b.csv")]})
    assert answer.status_code == 201
    prompt, (first, _) = answer.json(), File.objects.order_by("pk")
    assert (prompt["input"], prompt["model"], prompt["visible"], prompt["origin"]) == ("Sum up.", "high", True, "api")
    assert prompt["files"][0] == {
        "id": first.pk,
        "name": "sales.csv",
        "media_type": "text/csv",
        "size": 8,
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "url": f"/api/files/{first.pk}/",
    }
    assert [file["name"] for file in prompt["files"]] == ["sales.csv", "b.csv"]
    assert api.get(f"/api/prompts/{prompt['id']}/").json()["files"] == prompt["files"]
    assert api.get(prompts).json()["results"][0]["files"] == prompt["files"]
    assert b"".join(api.get(prompt["files"][0]["url"])) == CONTENT
    assert said(with_key(bob).get(prompt["files"][0]["url"]), 404) == "not_found"


def test_files_alone_are_a_message(ann: User, prompts: str) -> None:
    answer = with_key(ann).send(prompts, {"files": csv()})
    assert (answer.status_code, answer.json()["input"], len(answer.json()["files"])) == (201, "", 1)


def test_without_files_there_are_none(ann: User, prompts: str) -> None:
    """As JSON, and as a form."""
    api = with_key(ann)
    assert api.post(prompts, {"input": "Hi."}).json()["files"] == []
    Conversation.objects.update(active_prompt=None)
    Prompt.objects.update(state=State.COMPLETED)
    assert api.send(prompts, {"input": "Hi."}).json()["files"] == []


def test_the_same_form_again_gives_the_same_prompt(ann: User, prompts: str) -> None:
    api = with_key(ann)
    first, again = (api.send(prompts, {"files": csv()}, Idempotency_Key="k") for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert File.objects.count() == 1
    other = api.send(prompts, {"files": csv(content=b"other")}, Idempotency_Key="k")
    assert said(other, 409) == "idempotency_conflict"


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"files": [csv("big.csv", b"x" * (MB + 1))]}, "files", "big.csv is too large. A file can have up to 1 MB."),
        ({"files": [csv(f"{n}") for n in range(11)]}, "files", "You attached 11 files; a message can have 10."),
        ({"input": "Hi.", "files": "text"}, "files", "Send files here, not text."),
        ({"input": "Hi.", "file": csv()}, "file", "There is no such field for files."),
        ({"input": "Hi.", "colour": "red"}, "colour", "There is no such field."),
        ({"input": ["Hi.", "Ho."]}, "input", "Send it once."),
        ({"input": "Hi.", "model": "best"}, "model", "normal"),
        ({"input": "Hi.", "visible": "perhaps"}, "visible", "true or false"),
        ({"input": ""}, "input", "Write something first."),
    ],
)
def test_what_cannot_be_taken_is_told_by_its_field(
    ann: User, prompts: str, fields: dict[str, Any], field: str, why: str
) -> None:
    for file in fields.get("files", []) if isinstance(fields.get("files"), list) else []:
        file.seek(0)
    error = error_of(with_key(ann).send(prompts, fields), 400)
    assert error["code"] == "invalid"
    assert list(error["fields"]) == [field]
    assert why in error["fields"][field][0]
    assert (Prompt.objects.count(), File.objects.count()) == (0, 0)


def test_a_workspace_that_takes_no_file_is_told(ann: User, prompts: str, tmp_path: Path) -> None:
    (tmp_path / "workspaces").mkdir()
    (tmp_path / "workspaces" / str(Conversation.objects.get().pk)).symlink_to(tmp_path)
    error = error_of(with_key(ann).send(prompts, {"input": "Sum up.", "files": csv()}), 400)
    assert error["fields"]["files"][0].startswith(
        "sales.csv could not be stored: its place in the workspace is no longer a folder"
    )
    assert (Prompt.objects.count(), File.objects.count()) == (0, 0)


def test_who_may_not_say_something_stores_nothing(ann: User, bob: User, prompts: str) -> None:
    """Others find nothing; only staff may hide a turn; a key that only reads cannot send."""
    assert said(with_key(bob).send(prompts, {"files": csv()}), 404) == "not_found"
    assert said(with_key(ann).send(prompts, {"visible": "false", "files": csv()}), 403) == "forbidden"
    assert said(with_key(ann, "read").send(prompts, {"files": csv()}), 403) == "forbidden"
    assert said(Api().send(prompts, {"files": csv()}), 401) == "not_authenticated"
    assert not File.objects.exists()


def test_a_session_sends_a_form_with_the_token_of_a_page(ann: User, prompts: str) -> None:
    """Without the CSRF token the request is refused before anything is stored."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    assert said(Api(client=client).send(prompts, {"files": csv()}), 403) == "csrf_failed"
    client.get("/")
    token = client.cookies[settings.CSRF_COOKIE_NAME].value
    assert Api(client=client).send(prompts, {"files": csv()}, X_CSRFToken=token).status_code == 201


def test_a_form_that_breaks_off_is_malformed(ann: User, prompts: str) -> None:
    api = with_key(ann)
    broken = api.client.post(
        prompts, b"no form", content_type="multipart/form-data", headers={"Authorization": f"Bearer {api.key}"}
    )
    assert said(broken, 400) == "malformed"


def test_the_form_is_described(ann: User) -> None:
    described = with_key(ann).get("/api/schema/").json()
    sent = described["paths"]["/api/conversations/{id}/prompts/"]["post"]["requestBody"]["content"]
    assert list(sent) == ["application/json", "multipart/form-data"]
    form = described["components"]["schemas"][sent["multipart/form-data"]["schema"]["$ref"].rpartition("/")[2]]
    assert form["properties"]["files"]["items"] == {"type": "string", "format": "binary"}
    assert form["additionalProperties"] is False
