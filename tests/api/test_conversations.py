"""Conversations, files and system prompts over the API."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction
from django.test import Client

from agents.models import SystemPrompt
from conversations.models import Conversation, File, Prompt
from conversations.models import Step as Row
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.start import begin_conversation, start_conversation, start_prompt
from tests.api.client import JSON, Api, error_of, said
from tests.conversations.recorded import Site, at_once
from tests.conversations.support import Story, person
from tests.engine.cast import site as scripted
from tests.engine.support import says

LIST = "/api/conversations/"
AGENTS = {"agents-TOTAL_FORMS": "0", "agents-INITIAL_FORMS": "0"}
"""The form in the admin that chooses a system prompt for agents, without any."""
pytestmark = pytest.mark.django_db


def test_a_conversation_is_started_and_read(api: Api, ann: User) -> None:
    response = api.post(LIST, {"title": " Plans "})
    assert response.status_code == 201
    told = response.json()
    assert (told["title"], told["system_prompt"], told["active_prompt"], told["seq"]) == ("Plans", None, None, 0)
    assert Conversation.objects.get().owner == ann
    assert told["page"] == f"/c/{told['id']}/"
    assert api.get(f"{LIST}{told['id']}/").json() == told
    prompt = api.post(f"{LIST}{told['id']}/prompts/", {"input": "Hi."}).json()
    told = api.get(f"{LIST}{told['id']}/").json()
    assert (told["active_prompt"], told["seq"], told["title"]) == (prompt["id"], 1, "Plans")


def test_the_list_is_pages_of_ones_own(api: Api, other: Api, ann: User, bob: User) -> None:
    for number in range(5):
        start_conversation(ann, f"{number}")
    start_conversation(bob, "Bob's")
    address, found = f"{LIST}?page_size=2", []
    while address:
        page = api.get(address).json()
        assert page["count"] == 5
        found += [each["title"] for each in page["results"]]
        address = page["next"]
    assert sorted(found) == ["0", "1", "2", "3", "4"]
    assert page["previous"]
    assert len(api.get(f"{LIST}?page_size=1000000").json()["results"]) == 5
    theirs = Conversation.objects.get(owner=ann, title="3")
    assert said(other.get(f"{LIST}{theirs.pk}/"), 404) == "not_found"


def test_its_prompts_are_listed_in_their_order(api: Api, ann: User, site: Site) -> None:
    first = site.ended(ann, says("One."), says("Two."))
    second = start_prompt(first.conversation, ann, "And then?")
    told = api.get(f"{LIST}{first.conversation_id}/prompts/").json()
    assert [(each["id"], each["state"]) for each in told["results"]] == [(first.pk, "completed"), (second.pk, "queued")]
    assert "outputs" not in told["results"][0]


def test_a_conversation_alone_takes_no_key(api: Api) -> None:
    """An error is better than ignoring the key: nothing runs in a conversation alone."""
    assert said(api.post(LIST, {}, Idempotency_Key="k"), 400) == "key_not_taken"
    assert not Conversation.objects.exists()


# System prompts


def test_a_conversation_may_name_its_system_prompt(
    api: Api, ann: User, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """By id or by name; from the next turn on the model gets it instead of the agent's own."""
    pirate = SystemPrompt.create(name="Pirate", text="Talk like a pirate.")
    for named in (pirate.pk, "Pirate"):
        told = api.post(LIST, {"system_prompt": named}).json()
        assert told["system_prompt"] == {"id": pirate.pk, "name": "Pirate"}
    registry, model = scripted([says("Arr."), says("Ahoy.")])
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    talk = f"{LIST}{told['id']}/prompts/"
    prompt = api.post(talk, {"input": "Hi."}).json()
    site.works()
    assert model.asked[-1].system == "Talk like a pirate."
    call = Row.objects.get(prompt=prompt["id"], path="", type="action_call")
    told_to_model = model.asked[-1].system
    assert call.content["payload"]["system"] == {"id": pirate.pk, "version": 1, "text": told_to_model}
    pirate.write("Talk like a parrot.", by=None)
    api.post(talk, {"input": "Hi."})
    site.works()
    assert model.asked[-1].system == "Talk like a parrot."


def test_a_conversation_without_one_has_the_default(ann: User) -> None:
    SystemPrompt.create(name="Other", text="Other.")
    usual = SystemPrompt.create(name="Usual", text="Usual.", is_default=True)
    start_prompt(start_conversation(ann), ann, "Hi.")
    assert Row.objects.get().content["payload"]["system"] == {"id": usual.pk, "version": 1, "text": "Usual."}


def test_the_choice_is_listed_changed_and_undone(api: Api, other: Api, ann: User) -> None:
    """A retired one is not offered; a conversation that has it keeps it."""
    house = SystemPrompt.create("House", "Be brief.", is_default=True)
    pirate = SystemPrompt.create("Pirate", "Arr.")
    pirate.write("Arr!", by=None)
    assert api.get("/api/system-prompts/").json()["results"] == [
        {"id": house.pk, "name": "House", "version": 1, "is_default": True},
        {"id": pirate.pk, "name": "Pirate", "version": 2, "is_default": False},
    ]
    address = f"{LIST}{start_conversation(ann).pk}/"

    def chooses(named: int | str | None) -> Any:
        bearer = {"Authorization": f"Bearer {api.key}"}
        return api.client.patch(address, {"system_prompt": named}, content_type=JSON, headers=bearer)

    assert chooses("Pirate").json()["system_prompt"] == {"id": pirate.pk, "name": "Pirate"}
    SystemPrompt.objects.filter(pk=pirate.pk).update(retired=True)
    assert [each["name"] for each in api.get("/api/system-prompts/").json()["results"]] == ["House"]
    assert api.client.patch(
        address, {"title": "New"}, content_type=JSON, headers={"Authorization": f"Bearer {api.key}"}
    ).json()["system_prompt"] == {"id": pirate.pk, "name": "Pirate"}
    assert chooses(None).json()["system_prompt"] is None
    assert "retired" in error_of(chooses("Pirate"), 400)["fields"]["system_prompt"][0]
    assert "retired" in error_of(api.post(LIST, {"system_prompt": pirate.pk}), 400)["fields"]["system_prompt"][0]
    assert other.get("/api/system-prompts/").json()["count"] == 1


def test_where_none_is_set_up_the_agent_keeps_its_own(ann: User) -> None:
    start_prompt(start_conversation(ann), ann, "Hi.")
    assert Row.objects.get().content["payload"] == {"text": "Hi.", "tier": "normal"}


def test_the_admin_keeps_one_default(client: Client) -> None:
    """Choosing one as the default resets the other; the database would refuse a second."""
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    address = "/admin/agents/systemprompt/add/"
    assert client.get(address).status_code == 200
    for name in ("First", "Second"):
        response = client.post(address, {**AGENTS, "name": name, "text": f"{name} words.", "default": "on"})
        assert response.status_code == 302, response.text
    assert [(each.name, each.is_default) for each in SystemPrompt.objects.all()] == [("First", False), ("Second", True)]
    second = SystemPrompt.objects.get(name="Second")
    page = client.get(f"/admin/agents/systemprompt/{second.pk}/change/").text
    assert "checked" in page
    client.post(
        f"/admin/agents/systemprompt/{second.pk}/change/", {**AGENTS, "name": "Second", "text": "None.", "opened": "1"}
    )
    assert not SystemPrompt.objects.filter(is_default=True).exists()
    assert "First" in client.get("/admin/agents/systemprompt/").text
    with pytest.raises(IntegrityError), transaction.atomic():
        SystemPrompt.objects.update(is_default=True)


# A conversation by its first message, as the page starts one


def test_the_first_message_twice_is_one_conversation(ann: User) -> None:
    """T-32: a form that was submitted twice."""
    first = begin_conversation(ann, "Hi.", key="k")
    assert begin_conversation(ann, " Hi. ", key="k") == first
    with pytest.raises(KeyReused):
        begin_conversation(ann, "Something else.", key="k")
    assert (Conversation.objects.get().title, Prompt.objects.count()) == ("Hi.", 1)
    assert begin_conversation(ann, "Hi.").conversation != first.conversation


@pytest.mark.django_db(transaction=True)
def test_the_first_message_ten_times_at_once_is_one_conversation(ann: User) -> None:
    came_to = at_once(*[lambda: begin_conversation(ann, "Hi.", key="k").pk] * 10)
    assert came_to == [Prompt.objects.get().pk] * 10
    assert Conversation.objects.count() == 1


# Files


def made(conversation: Conversation, name: str, content: bytes = b"<script>alert(1)</script>") -> File:
    file = File(
        conversation=conversation, name=name, media_type="text/html", size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip
    file.content.save("x", ContentFile(content))
    return file


@pytest.mark.parametrize(
    "name", ["page.html", "picture.svg", "data.xml", "page.xhtml", "README", 'a"\r\nX-Evil: 1.html', "\u202egnp.html"]
)
def test_a_file_is_always_an_attachment(api: Api, ann: User, name: str) -> None:
    """T-51, C7."""
    file = made(start_conversation(ann), name)
    for response in (api.get(f"/api/files/{file.pk}/"), api.get(f"/api/files/{file.pk}/", Accept="text/html")):
        assert response.status_code == 200
        assert b"".join(response.streaming_content) == b"<script>alert(1)</script>"
        assert response["Content-Disposition"].startswith("attachment")
        assert response["Content-Type"] == "application/octet-stream"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert "X-Evil" not in response.headers


def test_a_file_is_its_owners(api: Api, other: Api, ann: User) -> None:
    """T-49, T-59: only by the id of its row, and only for its owner."""
    file = made(start_conversation(ann), "a.txt")
    assert said(other.get(f"/api/files/{file.pk}/"), 404) == "not_found"
    for path in (f"{file.pk}/../../c/", "..%2f..%2fetc/passwd/", f"{file.pk}%00/", str(file.content.name)):
        assert said(api.get(f"/api/files/{path}"), 404) == "not_found"
    Path(file.content.path).unlink()
    assert said(api.get(f"/api/files/{file.pk}/"), 404) == "not_found"


@pytest.mark.parametrize("field", ["path", "content", "file", "url"])
def test_no_field_of_a_client_becomes_a_path(api: Api, ann: User, field: str) -> None:
    """T-59, CVE-2026-22218."""
    talk = f"{LIST}{start_conversation(ann).pk}/prompts/"
    assert list(error_of(api.post(talk, {"input": "Hi.", field: "/etc/passwd"}), 400)["fields"]) == [field]


def test_outputs_name_their_files(api: Api, ann: User, site: Site) -> None:
    story = Story(ann)
    story.asks_model()
    call = story.call("report.write")
    story.answers(call)
    file = made(story.conversation, "r.txt", b"Report")
    story.begins(call)
    story.emits(call, "file", file=file.pk, name="r.txt", summary="A report.")
    told = api.get(f"/api/prompts/{story.prompt.pk}/").json()["outputs"][-1]
    assert told["file"].pop("sha256") == hashlib.sha256(b"Report").hexdigest()
    assert told["file"] == {
        "id": file.pk, "name": "r.txt", "media_type": "text/html", "size": 6, "url": f"/api/files/{file.pk}/"
    }  # fmt: skip
    assert b"".join(api.get(told["file"]["url"]).streaming_content) == b"Report"
