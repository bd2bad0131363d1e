"""Managing conversations over the API: renaming, archiving, deleting, searching; and repeating a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from conversations.models import Conversation, Erasure
from conversations.prompts.start import start_conversation
from tests.api.client import JSON, Api, error_of, said
from tests.conversations.recorded import beaten_to_it, taken
from tests.conversations.support import Story

LIST = "/api/conversations/"
pytestmark = pytest.mark.django_db


def patch(api: Api, pk: int, body: dict[str, Any]) -> Any:
    return api.client.patch(f"{LIST}{pk}/", body, content_type=JSON, headers={"Authorization": f"Bearer {api.key}"})


def delete(api: Api, pk: int, body: dict[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {api.key}"}
    return api.client.delete(f"{LIST}{pk}/", body or {}, content_type=JSON, headers=headers)


def titles(api: Api, query: str = "") -> list[str]:
    return [each["title"] for each in api.get(f"{LIST}{query}").json()["results"]]


def test_a_conversation_is_renamed_and_put_away(api: Api, other: Api, ann: User) -> None:
    talk = start_conversation(ann, "Old")
    told = patch(api, talk.pk, {"title": " New  name "}).json()
    assert (told["title"], told["archived"]) == ("New name", False)
    assert patch(api, talk.pk, {"archived": True}).json() == told | {"archived": True}
    assert patch(api, talk.pk, {}).json()["archived"]
    assert patch(api, talk.pk, {"archived": False, "title": "Both"}).json() == told | {"title": "Both"}
    assert said(patch(other, talk.pk, {"title": "Mine"}), 404) == "not_found"


@pytest.mark.parametrize(
    "body",
    [
        {"title": ""},
        {"title": " "},
        {"title": "x" * 201},
        {"archived": "true"},
        {"seq": 1},
        {"system_prompt": "none such"},
        {"system_prompt": 99},
    ],
)
def test_what_cannot_be_taken_changes_nothing(api: Api, ann: User, body: dict[str, Any]) -> None:
    talk = start_conversation(ann, "Old")
    assert list(error_of(patch(api, talk.pk, {"archived": True} | body), 400)["fields"]) == [*body]
    talk.refresh_from_db()
    assert (talk.title, talk.archived_at) == ("Old", None)


def test_a_conversation_is_deleted_with_a_reason(api: Api, other: Api, ann: User) -> None:
    """Not another's, and not while a worker is at it."""
    talk = Story(ann).conversation
    prompt = talk.prompts.get()
    assert said(delete(other, talk.pk), 404) == "not_found"
    taken(prompt)
    error = error_of(delete(api, talk.pk), 409)
    assert (error["code"], error["prompt"]) == ("turn_in_progress", prompt.pk)
    idle = start_conversation(ann, "Idle")
    response = delete(api, idle.pk, {"reason": "Done with it."})
    assert (response.status_code, response.content) == (204, b"")
    assert Erasure.objects.get().reason == "Done with it."
    assert said(delete(api, idle.pk), 404) == "not_found"


def test_the_second_of_two_that_delete_finds_nothing(api: Api, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = start_conversation(ann)
    monkeypatch.setattr("conversations.api.conversations.erase", beaten_to_it)
    assert said(delete(api, talk.pk), 404) == "not_found"
    assert Erasure.objects.count() == 1


def test_reading_changes_and_deletes_nothing(limited: Callable[..., Api], ann: User) -> None:
    talk = start_conversation(ann, "Old")
    reader = limited("read")
    assert said(patch(reader, talk.pk, {"title": "New"}), 403) == "forbidden"
    assert said(delete(reader, talk.pk), 403) == "forbidden"
    assert Conversation.objects.get().title == "Old"


def test_the_list_is_what_is_not_archived(api: Api, ann: User) -> None:
    """Unless the query asks for archived ones, or searches."""
    here, away = start_conversation(ann, "Harbour here"), start_conversation(ann, "Harbour away")
    patch(api, away.pk, {"archived": True})
    assert titles(api) == titles(api, "?archived=false") == ["Harbour here"]
    assert titles(api, "?archived=true") == ["Harbour away"]
    assert titles(api, "?search=harbour") == ["Harbour away", "Harbour here"]
    assert titles(api, "?search=harbour&archived=false") == ["Harbour here"]
    assert titles(api, "?search=100%25") == []
    Story(ann, "A word in the hold.", here).ends()
    assert titles(api, "?search=hold") == ["Harbour here"]
    assert list(error_of(api.get(f"{LIST}?archived=1"), 400)["fields"]) == ["archived"]


def test_what_was_put_away_is_found_however_much_else_fits(
    api: Api, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a search applies to matches of the filter; newer ones outside of it take no place."""
    monkeypatch.setattr("conversations.api.conversations.FOUND_MOST", 1)
    away = start_conversation(ann, "Harbour away")
    patch(api, away.pk, {"archived": True})
    start_conversation(ann, "Harbour here")
    assert titles(api, "?search=harbour") == ["Harbour here"]
    assert titles(api, "?search=harbour&archived=true") == ["Harbour away"]


def test_a_turn_is_tried_again_once_for_each_key(api: Api, other: Api, ann: User) -> None:
    """The same key gives the same prompt; another turn is refused while this one runs."""
    story = Story(ann, "Count.")
    again = f"/api/prompts/{story.prompt.pk}/again/"
    assert error_of(api.post(again), 409)["prompt"] == story.prompt.pk
    story.ends("failed", "model_error")
    assert said(other.post(again), 404) == "not_found"
    assert list(error_of(api.post(again, {"input": "Else."}), 400)["fields"]) == ["input"]
    first, second = (api.post(again, Idempotency_Key="k") for _ in range(2))
    assert (first.status_code, first.json()["input"], first.json()["continues"]) == (201, "Count.", None)
    assert first.json()["id"] == second.json()["id"] != story.prompt.pk
    assert first["Location"] == f"/api/prompts/{first.json()['id']}/"
    assert said(api.post(again), 409) == "turn_in_progress"


def test_a_turn_that_completed_is_asked_again_while_nothing_was_said_since(api: Api, ann: User) -> None:
    """The new turn names the old one, which stays."""
    talk = start_conversation(ann)
    earlier, newest = Story(ann, "Look.", talk).ends(), Story(ann, "And now?", talk).ends()
    assert list(error_of(api.post(f"/api/prompts/{earlier.pk}/again/"), 400)["fields"]) == ["input"]
    answer = api.post(f"/api/prompts/{newest.pk}/again/")
    assert (answer.status_code, answer.json()["input"], answer.json()["repeats"]) == (201, "And now?", newest.pk)
