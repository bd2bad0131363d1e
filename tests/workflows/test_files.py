"""Files as inputs of workflows: uploaded first and lost by nothing, taken by the run that starts, or paths in it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from pydantic import BaseModel, Field, ValidationError

from agents.engine.errors import RegistryError
from agents.engine.schema import parse, schema_of
from agents.testing import run as trial
from conversations.files import pending
from conversations.files.uploads import Upload
from conversations.files.workspaces import folder_of
from conversations.models import File, KillSwitch, PendingFile, Prompt, Quota
from conversations.prompts.start import cancel_prompt, start_conversation
from conversations.prompts.startable import InvalidInput
from conversations.usage.storage import MB
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, at_once
from tests.conversations.support import person
from tests.workflows import shop
from workflows import Flow, UploadedFile, WorkspaceFile, WorkspaceFolder, workflow
from workflows.running import start_run

pytestmark = pytest.mark.django_db
CONTENT = b"1,2\n3,4\n"


class Sum(BaseModel):
    title: str = Field(min_length=3)
    table: UploadedFile = Field(description="The numbers.")
    extra: UploadedFile | None = None


class Places(BaseModel):
    file: WorkspaceFile
    folder: WorkspaceFolder = "."


@workflow("shop.sum", title="Sum up a table", category=shop.SHOP)
async def sum_up(flow: Flow[Sum]) -> str:
    """Sums up the numbers of a table."""
    return f"{flow.input.title}: {flow.input.table}, {flow.input.extra}"


@workflow("shop.summed", title="Sum up, once confirmed", category=shop.SHOP, confirm=True)
async def summed(flow: Flow[Sum]) -> str:
    """Sums up the numbers of a table."""
    return flow.input.table


@workflow("shop.places", title="Look at places", category=shop.SHOP, workspace=True)
async def places(flow: Flow[Places]) -> str:
    """Looks at a file and a folder of the workspace."""
    return f"{flow.input.file} in {flow.input.folder}"


PAGE, UPLOAD = reverse("workflow", args=["shop.sum"]), reverse("workflow-upload", args=["shop.sum"])
INSTALLED = (*shop.ALL, sum_up, summed, places)


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.AGENTSITE_WORKSPACES = tmp_path / "workspaces"
    with shop.installed(site, monkeypatch, workflows=INSTALLED):
        yield


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def bob() -> User:
    return person("bob")


@pytest.fixture
def client(ann: User) -> Client:
    client = Client()
    client.force_login(ann)
    return client


def a_file(name: str = "sales.csv", content: bytes = CONTENT) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, "text/csv")


def uploaded(user: User, name: str = "sales.csv", content: bytes = CONTENT) -> str:
    return pending.keep(user, Upload.of(a_file(name, content))).token


def key_of(field: str, page: Any) -> str:
    """The key of this field in a form on a page."""
    return next(str(each.key) for each in page.context["run"].fields if each.name == field)


def typed(client: Client, **more: Any) -> dict[str, Any]:
    """What a browser sends of the form, with these values by field."""
    page = client.get(PAGE)
    keys = {each.name: each.key for each in page.context["run"].fields}
    sent: dict[str, Any] = {"key": "k1"} | {picker(keys[name]): "" for name in ("table", "extra")}  # as browsers do
    for name, value in more.items():
        key = keys.get(name, name)
        sent[picker(key) if isinstance(value, SimpleUploadedFile) else key] = value
    return sent


def picker(key: str) -> str:
    """The name under which the file itself is sent for a field."""
    return f"{key}-upload"


def input_of(run: Prompt) -> dict[str, Any]:
    payload: dict[str, Any] = run.steps.get(path="", type="action_call").content["payload"]["input"]
    return payload


def contents() -> list[Path]:
    """All contents in the storage."""
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


# The types


def test_a_path_is_one_in_the_workspace() -> None:
    assert parse(Places, {"file": "reports/march.csv", "folder": "reports"}).file == "reports/march.csv"
    for path in ("", "/etc/passwd", "../x", "a/../../x", "a/", ".", "a\u202eb", "a\nb", "a\x00b", "x" * 300):
        with pytest.raises(ValidationError, match="file\n"):
            parse(Places, {"file": path})
    for path in ("", "/", "..", "a/..", "a\u200bb"):
        with pytest.raises(ValidationError, match="folder\n"):
            parse(Places, {"file": "a", "folder": path})


def test_the_schema_says_what_they_are() -> None:
    table, extra = (schema_of(Sum)["properties"][name] for name in ("table", "extra"))
    assert (table["type"], table["format"], table["description"]) == ("string", "uploaded-file", "The numbers.")
    assert extra["anyOf"] == [{"type": "string", "format": "uploaded-file"}, {"type": "null"}]
    formats = [each["format"] for each in schema_of(Places)["properties"].values()]
    assert formats == ["workspace-file", "workspace-folder"]


def test_an_uploaded_file_is_a_field_of_the_input_itself() -> None:
    class Inner(BaseModel):
        table: UploadedFile

    class Nested(BaseModel):
        inner: Inner

    class Several(BaseModel):
        tables: list[UploadedFile]

    class Default(BaseModel):
        table: UploadedFile = "sales.csv"

    many = type("Many", (BaseModel,), {"__annotations__": {f"t{number}": UploadedFile for number in range(11)}})
    wrong = {
        Nested: "inside a list or another model",
        Several: "inside a list",
        Default: "no default",
        many: "takes 11",
    }
    for model, why in wrong.items():

        async def function(flow: Any) -> None: ...

        with pytest.raises(RegistryError, match=why):
            workflow("shop.wrong", input=model)(function)


def test_a_workflow_is_tested_with_a_path() -> None:
    assert trial(sum_up, title="Sales", table="sales.csv").value == "Sales: sales.csv, None"


# The form


def test_a_file_is_uploaded_first_and_nothing_typed_is_lost(client: Client, ann: User, site: Site) -> None:
    sent = typed(client, title="My sales", table=a_file())
    key = key_of("table", client.get(PAGE))
    page = client.post(PAGE, sent | {"upload": key})
    assert (page.status_code, Prompt.objects.count()) == (200, 0)
    row = PendingFile.objects.get()
    assert (row.owner, row.name, row.media_type, row.size) == (ann, "sales.csv", "text/csv", 8)
    assert 'value="My sales"' in text_of(page)
    assert f'name="{key}" value="{row.token}"' in text_of(page)
    assert 'sales.csv</span> <span class="size num">8 bytes' in text_of(page)
    assert "Nothing has started" not in text_of(page)
    assert client.post(PAGE, typed(client, title="My sales", table=row.token)).status_code == 302
    run = Prompt.objects.get()
    assert input_of(run) == {"title": "My sales", "table": "sales.csv"}
    assert run.input == "/shop.sum title='My sales' table=sales.csv"
    assert (folder_of(run.conversation_id) / "sales.csv").read_bytes() == CONTENT
    assert (run.files.get().path, run.files.get().sha256, PendingFile.objects.count()) == ("sales.csv", row.sha256, 0)
    assert len(contents()) == 1  # the same one: it was not copied
    site.works()
    assert verify(run.conversation_id).problems == []


def test_start_uploads_what_is_still_chosen(client: Client) -> None:
    assert client.post(PAGE, typed(client, title="Sales", table=a_file(), extra=a_file("b.csv"))).status_code == 302
    run = Prompt.objects.get()
    assert input_of(run) == {"title": "Sales", "table": "sales.csv", "extra": "b.csv"}
    assert PendingFile.objects.count() == 0


def test_two_files_of_one_name_are_told_apart_in_the_input(client: Client) -> None:
    other = a_file(content=b"other")
    assert client.post(PAGE, typed(client, title="Sales", table=a_file(), extra=other)).status_code == 302
    run = Prompt.objects.get()
    given = input_of(run)
    assert (given["table"], given["extra"]) == ("sales.csv", "sales-2.csv")
    assert (folder_of(run.conversation_id) / "sales-2.csv").read_bytes() == b"other"
    assert str(run.input).endswith("table=sales.csv extra=sales-2.csv")


def test_a_run_that_does_not_start_loses_nothing(client: Client) -> None:
    page = client.post(PAGE, typed(client, title="no", table=a_file()))  # too short a title
    token = PendingFile.objects.get().token
    assert (page.status_code, token in text_of(page), Prompt.objects.count()) == (400, True, 0)
    switch = KillSwitch.objects.create(on_by="user:1", reason="A test.")
    page = client.post(PAGE, typed(client, title="Sales", table=token))
    assert (page.status_code, token in text_of(page), Prompt.objects.count()) == (409, True, 0)
    assert (len(contents()), [*Path(settings.AGENTSITE_WORKSPACES).rglob("*")]) == (1, [])
    switch.delete()
    assert client.post(PAGE, typed(client, title="Sales", table=token)).status_code == 302


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (a_file(content=b"x" * (MB + 1)), "sales.csv is too large. A file can have up to 1 MB."),
        (a_file(content=b""), "sales.csv is empty."),
        (None, "Choose a file."),
    ],
)
def test_a_file_that_is_refused_costs_no_other_field(client: Client, settings: Any, file: Any, why: str) -> None:
    settings.AGENTSITE_UPLOAD_MB = 1
    kept = pending.keep(User.objects.get(), Upload.of(a_file("b.csv"))).token
    file and file.seek(0)
    page = client.post(PAGE, typed(client, title="My sales", extra=kept, **({"table": file} if file else {})))
    said = text_of(page)
    assert (page.status_code, Prompt.objects.count(), PendingFile.objects.count()) == (400, 0, 1)
    assert said.count(why) == 1
    assert "Enter a value." not in said
    assert 'value="My sales"' in said
    assert kept in said
    (wrong,) = page.context["run"].wrong
    assert wrong.name == "table"


@pytest.mark.django_db(transaction=True)
def test_what_is_chosen_is_replaced_and_removed(client: Client) -> None:
    key = key_of("table", client.get(PAGE))
    client.post(PAGE, typed(client, title="Sales", table=a_file()) | {"upload": key})
    first = PendingFile.objects.get().token
    sent = {**typed(client, title="Sales", table=first), picker(key): a_file("b.csv")}
    client.post(PAGE, sent | {"upload": key})
    second = PendingFile.objects.get()
    assert (second.name, len(contents())) == ("b.csv", 1)
    page = client.post(PAGE, typed(client, title="My sales", table=second.token) | {"remove": key})
    assert (page.status_code, PendingFile.objects.count(), contents()) == (200, 0, [])
    assert 'value="My sales"' in text_of(page)
    assert second.token not in text_of(page)


def test_the_script_gets_the_field_with_its_file_or_the_reason(client: Client, bob: User) -> None:
    key = key_of("table", client.get(PAGE))
    answer = client.post(UPLOAD, {"upload": key, "key": "k", picker(key): a_file()})
    row = PendingFile.objects.get()
    assert (answer.status_code, f'name="{key}" value="{row.token}"' in text_of(answer)) == (200, True)
    assert "<html" not in text_of(answer)
    answer = client.post(UPLOAD, {"upload": key, picker(key): a_file(content=b"")})
    assert (answer.status_code, "sales.csv is empty." in text_of(answer)) == (400, True)
    assert client.post(UPLOAD, {"upload": "nothing", picker(key): a_file()}).status_code == 404
    assert Client().post(UPLOAD, {"upload": key, picker(key): a_file()}).status_code == 302
    assert client.get(UPLOAD).status_code == 405
    assert PendingFile.objects.count() == 1


def test_a_form_that_is_sent_twice_starts_one_run(client: Client) -> None:
    """Also if the second request finds the file taken by the first, or brings it once more."""
    token = uploaded(User.objects.get())
    first, second = (client.post(PAGE, typed(client, title="Sales", table=token)) for _ in range(2))
    assert (first.status_code, first["Location"]) == (302, second["Location"])
    sent = typed(client, title="Sales", key="k2")
    key = key_of("table", client.get(PAGE))
    first, second = (client.post(PAGE, {**sent, picker(key): a_file()}) for _ in range(2))
    assert (first.status_code, first["Location"]) == (302, second["Location"])
    assert Prompt.objects.count() == 2


def test_a_confirmation_shows_the_name_and_starts_with_the_file(client: Client) -> None:
    page = reverse("workflow", args=["shop.summed"])
    sent = typed(client, title="Sales", table=a_file())
    asked = client.post(page, sent)
    token = PendingFile.objects.get().token
    key = key_of("table", client.get(PAGE))
    assert "<dd" in text_of(asked)
    assert "sales.csv" in text_of(asked)
    assert text_of(asked).count(token) == 1  # as a hidden field
    assert client.post(page, {**typed(client, title="Sales"), key: token, "confirmed": "1"}).status_code == 302
    assert input_of(Prompt.objects.get())["table"] == "sales.csv"


def test_run_again_offers_the_file_of_the_earlier_run_as_a_copy(client: Client, ann: User) -> None:
    first = start_run(sum_up, ann, {"title": "Sales", "table": uploaded(ann)})
    page = client.get(reverse("workflow-again", args=["shop.sum", first.pk]))
    name = f"file:{first.files.get().pk}"
    assert (name in text_of(page), "sales.csv" in text_of(page), PendingFile.objects.count()) == (True, True, 0)
    assert client.post(PAGE, typed(client, title="Sales", table=name)).status_code == 302
    second = Prompt.objects.exclude(pk=first.pk).get()
    assert input_of(second)["table"] == "sales.csv"
    assert second.files.get().content.name != first.files.get().content.name
    cancel_prompt(first.pk, ann)
    File.objects.filter(prompt=first).delete()  # as a redaction does
    page = client.get(reverse("workflow-again", args=["shop.sum", first.pk]))
    assert "The file of that run is no longer here. Choose it again." in text_of(page)
    assert 'value="Sales"' in text_of(page)


def test_a_line_and_a_link_open_the_form_and_name_no_upload(client: Client, ann: User) -> None:
    chat, token = start_conversation(ann), uploaded(ann)
    answer = client.post(reverse("say", args=[chat.pk]), {"input": f"/shop.sum title=Sales table={token}", "key": "k"})
    assert answer["Location"] == f"{reverse('workflow-in', args=['shop.sum', chat.pk])}?title=Sales"
    assert token not in text_of(client.get(PAGE, {"title": "Sales", "table": token}))
    assert Prompt.objects.count() == 0


@pytest.mark.parametrize("earlier", [False, True])
def test_a_file_whose_content_is_gone_is_told_at_its_field(client: Client, ann: User, earlier: bool) -> None:
    """As after a backup without files was put back."""
    token = uploaded(ann)
    run = start_run(sum_up, ann, {"title": "Sales", "table": uploaded(ann, "b.csv")})
    for path in contents():
        path.unlink()
    token = f"file:{run.files.get().pk}" if earlier else token
    page = client.post(PAGE, typed(client, title="My sales", table=token))
    said = text_of(page)
    assert (page.status_code, Prompt.objects.count()) == (400, 1)
    assert said.count("This file is no longer here.") == 1
    assert 'value="My sales"' in said
    assert token not in said
    page = client.post(PAGE, typed(client, title="My sales", table=token) | {"change": "1"})
    assert "This file is no longer here." in text_of(page)
    page = client.get(reverse("workflow-again", args=["shop.sum", run.pk]))
    assert text_of(page).count("The file of that run is no longer here. Choose it again.") == 1


def test_a_file_whose_content_is_gone_can_be_chosen_again_at_once(client: Client) -> None:
    client.post(PAGE, typed(client, title="no", table=a_file()))
    contents()[0].unlink()
    assert client.post(PAGE, typed(client, title="Sales", table=a_file())).status_code == 302


# Whose file it is


def test_a_token_is_good_for_its_owner_only_and_once(client: Client, ann: User, bob: User) -> None:
    gone = "This file is no longer here."
    for token in (uploaded(bob), "none-such", "../x", "file:1", "file:0", "file:x"):
        page = client.post(PAGE, typed(client, title="My sales", table=token))
        assert (page.status_code, gone in text_of(page), 'value="My sales"' in text_of(page)) == (400, True, True), (
            token
        )
        with pytest.raises(InvalidInput, match=gone):
            start_run(sum_up, ann, {"title": "Sales", "table": token})
    theirs = start_run(sum_up, bob, {"title": "Sales", "table": PendingFile.objects.get().token}).files.get()
    with pytest.raises(InvalidInput, match=gone):
        start_run(sum_up, ann, {"title": "Sales", "table": f"file:{theirs.pk}"})
    token = uploaded(ann)
    with pytest.raises(InvalidInput, match="another field"):
        start_run(sum_up, ann, {"title": "Sales", "table": token, "extra": token})
    start_run(sum_up, ann, {"title": "Sales", "table": token})
    with pytest.raises(InvalidInput, match=gone):
        start_run(sum_up, ann, {"title": "Sales", "table": token})


def test_no_button_removes_the_file_of_another(client: Client, bob: User) -> None:
    token, key = uploaded(bob), key_of("table", client.get(PAGE))
    client.post(PAGE, typed(client, title="Sales", table=token) | {"remove": key})
    client.post(PAGE, {**typed(client, title="Sales"), key: token, picker(key): a_file(), "upload": key})
    assert PendingFile.objects.filter(token=token).exists()


def test_a_plain_path_is_no_upload(ann: User) -> None:
    with pytest.raises(InvalidInput, match="no longer here"):
        start_run(sum_up, ann, {"title": "Sales", "table": "sales.csv"})


def test_a_name_may_be_odd(client: Client) -> None:
    odd = "../..//\u202eexe.<b>&'\"csv"
    page = client.post(PAGE, typed(client, title="no", table=a_file(odd)))
    row = PendingFile.objects.get()
    assert "/" not in row.name
    assert "\u202e" not in row.name
    assert escape(row.name) in text_of(page)
    client.post(PAGE, typed(client, title="Sales", table=row.token))
    run = Prompt.objects.get()
    assert (folder_of(run.conversation_id) / input_of(run)["table"]).read_bytes() == CONTENT


def test_a_full_quota_is_an_error_at_the_field(client: Client, ann: User) -> None:
    Quota.objects.create(user=ann, storage_mb=1)
    uploaded(ann, content=b"x" * (MB - 100))
    page = client.post(PAGE, typed(client, title="My sales", table=a_file(content=b"y" * 200)))
    assert (page.status_code, PendingFile.objects.count()) == (400, 1)
    assert "sales.csv was not stored: your files take" in text_of(page)
    assert 'value="My sales"' in text_of(page)


def test_a_quota_that_the_run_would_fill_keeps_the_upload(client: Client, ann: User) -> None:
    """In a run, the file is kept twice: in the record and in the workspace."""
    token = uploaded(ann, content=b"x" * 700_000)
    Quota.objects.create(user=ann, storage_mb=1)
    page = client.post(PAGE, typed(client, title="My sales", table=token))
    assert (page.status_code, Prompt.objects.count(), PendingFile.objects.count()) == (400, 0, 1)
    assert "could not be stored: your files take" in text_of(page)
    assert token in text_of(page)
    (wrong,) = page.context["run"].wrong
    assert wrong.name == "table"


# Paths in the workspace


def test_the_files_of_the_chosen_chat_are_proposed(client: Client, ann: User, tmp_path: Path) -> None:
    chat = start_conversation(ann, "Reports")
    folder = folder_of(chat.pk)
    (folder / "reports").mkdir()
    (folder / "reports" / "march.csv").write_text("1")
    (folder / "out").symlink_to("/etc")
    page = text_of(client.get(reverse("workflow-in", args=["shop.places", chat.pk])))
    assert '<option value="reports/march.csv">' in page
    assert '<option value="reports">' in page
    assert "passwd" not in page
    assert "<datalist" not in text_of(client.get(reverse("workflow", args=["shop.places"])))


def test_a_path_that_leads_out_is_refused_at_its_field(client: Client) -> None:
    page = reverse("workflow", args=["shop.places"])
    key = key_of("file", client.get(page))
    answer = client.post(page, {"key": "k", key: "../../etc/passwd"})
    assert (answer.status_code, Prompt.objects.count()) == (400, 0)
    assert "contains &#x27;..&#x27;: only paths inside the workspace can be used." in text_of(answer)


# The command


def run_command(*words: str) -> tuple[int, str]:
    """Return the exit code of the command, and what it said of an error."""
    try:
        call_command("run_workflow", "shop.sum", "--user=ann", *words, stdout=io.StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as error:
        return int(str(error.code)), ""
    return 0, ""


@pytest.mark.django_db(transaction=True)
def test_a_command_gives_the_path_of_a_file(ann: User, tmp_path: Path) -> None:
    table, said = tmp_path / "sales.csv", tmp_path / "input.json"
    table.write_bytes(CONTENT)
    said.write_text(json.dumps({"title": "Sales", "table": str(table)}))
    assert run_command("title=no", f"table={table}")[0] == 3
    assert (PendingFile.objects.count(), contents()) == (0, [])
    code, why = run_command("title=Sales", f"table={tmp_path}")
    assert (code, f"table: {tmp_path} is not a file on this machine." in why) == (3, True)
    assert run_command("title=Sales", f"table={table}") == (2, "")
    assert run_command(f"--input={said}") == (2, "")
    for run in Prompt.objects.all():
        assert (input_of(run)["table"], run.files.get().media_type) == ("sales.csv", "text/csv")
        assert (folder_of(run.conversation_id) / "sales.csv").read_bytes() == CONTENT
    assert (PendingFile.objects.count(), table.read_bytes()) == (0, CONTENT)


# At the same moment


@pytest.mark.django_db(transaction=True)
def test_runs_that_want_one_file_at_once_are_one_run(ann: User) -> None:
    token = uploaded(ann)
    came_to = at_once(*[lambda: start_run(sum_up, ann, {"title": "Sales", "table": token})] * 5)
    assert sorted(type(each).__name__ for each in came_to) == ["InvalidInput"] * 4 + ["Prompt"]
    assert (Prompt.objects.count(), File.objects.count(), PendingFile.objects.count(), len(contents())) == (1, 1, 0, 1)
    assert [path.name for path in Path(settings.AGENTSITE_WORKSPACES).rglob("*") if path.is_file()] == ["sales.csv"]


@pytest.mark.django_db(transaction=True)
def test_one_request_five_times_at_once_is_one_run(ann: User) -> None:
    token = uploaded(ann)
    came_to = at_once(*[lambda: start_run(sum_up, ann, {"title": "Sales", "table": token}, key="k")] * 5)
    assert {type(each).__name__ for each in came_to} == {"Prompt"}
    assert (Prompt.objects.count(), File.objects.count(), len(contents())) == (1, 1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_taken_and_removed_at_once_is_whole_or_gone(ann: User) -> None:
    for number in range(5):
        token = uploaded(ann, f"{number}.csv")
        ran, removed = at_once(
            lambda token=token: start_run(sum_up, ann, {"title": "Sales", "table": token}),  # type: ignore[misc]
            lambda token=token: pending.discard(ann, token),  # type: ignore[misc]
        )
        assert isinstance(ran, Prompt) != (removed is True), (ran, removed)
        for file in File.objects.all():
            assert file.content.read() == CONTENT
            file.content.close()
