"""Events over the socket, live and caught up."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from agents.engine.ledger import Step
from conversations.models import Draft
from conversations.push.growth import Growth
from tests.conversations.listening import Listener, Transcript, as_the_api_says, aside, cookie, following
from tests.conversations.recording import gone
from tests.conversations.support import Story, asking, says

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_happens_is_told_as_it_happens(ann: User) -> None:
    """A client that folds nothing but events has the outputs of the API, during the turn and at its end."""
    session = await aside(cookie, ann)
    story, _ = await aside(asking, ann)
    transcript = Transcript()
    async with following(story.conversation.pk, session) as socket:
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "waiting_for_approval")
        assert [transcript.prompt(story.prompt.pk)] == await aside(as_the_api_says, ann, story.prompt.pk)
        await aside(story.ends, "cancelled", "cancelled", "Stopped.")
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "cancelled")
    assert [transcript.prompt(story.prompt.pk)] == await aside(as_the_api_says, ann, story.prompt.pk)


async def until(socket: Listener, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the events up to the first matching one."""
    told = [await socket.event()]
    while not wanted(told[-1]):
        told.append(await socket.event())
    return told


def read_when(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], after: Callable[[], object]) -> None:
    """Let these run, in another thread, before drafts are read the next time."""
    original = Growth.read

    def overtaken(growth: Growth, conversations: Collection[int]) -> Any:
        monkeypatch.setattr(Growth, "read", original)
        before()
        grown = original(growth, conversations)
        after()
        return grown

    monkeypatch.setattr(Growth, "read", overtaken)


def grows(story: Story, path: str, text: str) -> None:
    """A worker writes so much of a draft."""
    written = {"attempt": 1, "fence": 1, "text": text, "size": len(text)}
    Draft.objects.update_or_create(conversation=story.conversation, prompt=story.prompt, path=path, defaults=written)


async def test_text_never_follows_the_output_that_has_the_whole(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the record was committed after the text was read; and the text of the next round arrives."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    await aside(grows, story, "1", "I look ")

    def ends() -> None:
        with transaction.atomic():
            story.answers(says("I look around."))
            gone(story, "1")

    async with following(story.conversation.pk, session) as socket:
        await until(socket, lambda event: event["type"] == "text.delta")
        read_when(monkeypatch, lambda: grows(story, "1", "I look around."), ends)
        await aside(story.append, Step("system", "note", {"text": "wakes every watch"}, "1"))
        told = await until(socket, lambda event: event["type"] == "output.created")
        await aside(story.asks_model)
        await aside(grows, story, "2", "And now")
        told += await until(socket, lambda event: event.get("text") == "And now")
    told = told[[event["type"] for event in told].index("output.created") + 1 :]
    assert [(event["type"], event["path"]) for event in told] == [("text.delta", "2")]


@pytest.mark.parametrize("catching_up", [False, True])
async def test_text_never_comes_before_what_it_follows(
    ann: User, monkeypatch: pytest.MonkeyPatch, catching_up: bool
) -> None:
    """A command's output is sent after its start, even if both were committed after the steps were read."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    call = story.call("shell.run", command="ls")
    await aside(story.answers, call)

    def begins() -> None:
        story.begins(call)
        grows(story, call.path, "a.txt\n")

    if catching_up:
        read_when(monkeypatch, begins, lambda: None)
    async with following(story.conversation.pk, session) as socket:
        await until(socket, lambda event: event["type"] == "output.created")
        if not catching_up:
            read_when(monkeypatch, begins, lambda: None)
            await aside(story.append, Step("system", "note", {"text": "wakes every watch"}, "1"))
        told = await until(socket, lambda event: event.get("text") == "a.txt\n")
    assert [event["type"] for event in told] == ["output.updated", "text.delta"]
