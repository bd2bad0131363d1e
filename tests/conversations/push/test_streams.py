"""Server-sent events."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from conversations.api import events
from tests.conversations.listening import Transcript, as_the_api_says, aside, key_for, streamed
from tests.conversations.support import Story, asking

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stream_of_a_prompt_tells_all_of_it_and_ends(ann: User) -> None:
    """Joined in the middle, up to the terminal event; the client has what the API returns (S94)."""
    key = await aside(key_for, ann)
    story, _ = await aside(asking, ann)
    transcript = Transcript()
    async with streamed(f"/api/prompts/{story.prompt.pk}/events/", key) as stream:
        async for event in stream.events():
            transcript.take(event)
            if event["type"] == "prompt.paused":
                await aside(story.ends, "cancelled", "cancelled", "Stopped.")
    assert transcript.told[-1][1] == "prompt.cancelled"
    assert stream.last_id == transcript.at
    assert [transcript.prompt(story.prompt.pk)] == await aside(as_the_api_says, ann, story.prompt.pk)


async def test_a_prompt_that_ended_is_told_at_once_and_its_stream_ends(ann: User) -> None:
    """A client that connects after the end gets all of it, and nothing of another prompt."""
    key = await aside(key_for, ann)
    before = await aside(Story, ann)
    await aside(before.ends)
    story = await aside(Story, ann, conversation=before.conversation)
    await aside(story.ends)
    async with streamed(f"/api/prompts/{story.prompt.pk}/events/", key) as stream:
        told = [(event["type"], event["prompt"]) async for event in stream.events()]
    assert told == [(f"prompt.{name}", story.prompt.pk) for name in ("created", "started", "completed")]


@pytest.mark.parametrize("by", ["after", "Last-Event-ID", "both"])
async def test_it_goes_on_where_the_client_stood(ann: User, by: str) -> None:
    """`Last-Event-ID`, which a browser sends when it reconnects, takes precedence over the URL."""
    key = await aside(key_for, ann)
    story = await aside(Story, ann)
    await aside(story.ends)
    address = f"/api/prompts/{story.prompt.pk}/events/?after=" + {"after": "2", "both": "1"}.get(by, "")
    headers = {} if by == "after" else {"Last-Event-ID": "2"}
    async with streamed(address, key, **headers) as stream:
        assert [event["type"] async for event in stream.events()] == ["prompt.completed"]


@pytest.mark.parametrize(
    ("after", "header"), [("two", ""), ("-1", ""), ("", "two"), ("-1", "2"), ("2", "-1"), (str(10**19), "2")]
)
async def test_where_a_client_stood_must_be_a_number_wherever_it_says_so(ann: User, after: str, header: str) -> None:
    key = await aside(key_for, ann)
    story = await aside(Story, ann)
    headers = {"Authorization": f"Bearer {key}"} | ({"Last-Event-ID": header} if header else {})
    response = await AsyncClient().get(f"/api/prompts/{story.prompt.pk}/events/?after={after}", headers=headers)
    assert response.status_code == 400
    assert "Send the number of a step" in response.json()["error"]["message"]


async def test_who_has_the_end_is_told_not_to_come_back(ann: User) -> None:
    key = await aside(key_for, ann)
    story = await aside(Story, ann)
    await aside(story.ends)
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": "3"}
    answer = await AsyncClient().get(f"/api/prompts/{story.prompt.pk}/events/", headers=headers)
    assert answer.status_code == HTTPStatus.NO_CONTENT


async def test_a_silent_stream_says_that_it_is_there(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular comment keeps proxies from closing the stream."""
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    key = await aside(key_for, ann)
    story = await aside(Story, ann)
    async with streamed(f"/api/conversations/{story.conversation.pk}/events/", key) as stream:
        await stream.heartbeat()


async def answer(address: str, method: str = "get", **headers: str) -> tuple[int, str, dict[str, Any]]:
    client: Any = AsyncClient()
    response = await getattr(client, method)(address, headers=headers)
    return response.status_code, response.json()["error"]["code"], dict(response.headers)


async def test_it_refuses_in_the_words_of_the_api(ann: User, bob: User) -> None:
    """Without a user, with a bad key, another's conversation, one that does not exist, a bad number, and POST."""
    story = await aside(Story, ann)
    mine, other = f"Bearer {await aside(key_for, ann)}", f"Bearer {await aside(key_for, bob)}"
    for address in (f"/api/conversations/{story.conversation.pk}/events/", f"/api/prompts/{story.prompt.pk}/events/"):
        status, code, headers = await answer(address)
        assert (status, code, headers["WWW-Authenticate"]) == (401, "not_authenticated", "Bearer")
        assert (await answer(address, Authorization="Bearer agk_no"))[:2] == (401, "bad_key")
        assert (await answer(address, Authorization=other))[:2] == (404, "not_found")
        assert (await answer(f"{address}?after=-1", Authorization=mine))[:2] == (400, "invalid")
        assert (await answer(address, method="post", Authorization=mine))[:2] == (405, "method_not_allowed")
    for pk in (999, 10**25):
        for address in (f"/api/conversations/{pk}/events/", f"/api/prompts/{pk}/events/"):
            assert (await answer(address, Authorization=mine))[:2] == (404, "not_found")
