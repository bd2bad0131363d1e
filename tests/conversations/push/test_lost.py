"""Whatever happens to sockets and messages, a client ends with what the server has (I9)."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer
from django.contrib.auth.models import User

from conversations.prompts.start import start_conversation
from conversations.push import hub
from conversations.push.event_reader import EventReader
from tests.conversations.listening import (
    PATIENCE_SECONDS,
    Transcript,
    as_the_api_says,
    aside,
    cookie,
    following,
    key_for,
    streamed,
)
from tests.conversations.recording import record_turn, recording

pytestmark = pytest.mark.django_db(transaction=True)

CUTS = 1000


def all_told(conversation: int) -> list[tuple[int, str]]:
    """Return every event of a conversation."""
    telling, told = EventReader(conversation, 0), []
    while new := telling.read():
        told += [(event.seq, event.type) for event in new]
    return told


async def expect_whole(transcript: Transcript, owner: User, conversation: int, prompts: list[int]) -> None:
    """The client has each event once and in order, the prompts of the API, and no unfinished text."""
    assert transcript.told == await aside(all_told, conversation)
    assert transcript.drafts == {}
    assert [transcript.prompt(prompt) for prompt in prompts] == await aside(as_the_api_says, owner, *prompts)


async def test_a_socket_that_is_cut_a_thousand_times(ann: User) -> None:
    """Disconnected at random points of running turns: no gap, no duplicate (T-39, I9)."""
    session, chance = await aside(cookie, ann), random.Random(39)
    conversation = await aside(start_conversation, ann)
    transcript, behind = Transcript(), threading.Semaphore(40)

    def ahead() -> bool:
        return behind.acquire(timeout=PATIENCE_SECONDS)  # turns are never far ahead of the client, nor behind it

    with recording(ann, conversation, ahead) as prompts:
        async with following(conversation.pk, session):  # somebody else, all the time
            for cut in range(CUTS):
                frames = chance.randrange(1, 4)
                if cut % 5:  # a record brings 1.3 events on average
                    behind.release(frames)
                async with following(conversation.pk, session, transcript.at) as socket:
                    for _ in range(frames):
                        transcript.take(await socket.event())
        behind.release(1000)
    async with following(conversation.pk, session, transcript.at) as socket:
        await socket.listen(transcript, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


class Lossy(InMemoryChannelLayer):  # type: ignore[misc]
    """A channel layer that loses 30 % of its messages, repeats 10 %, and reorders some."""

    chance = random.Random(38)
    counts: dict[str, int] = {}

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        """Send a message, or lose it."""
        dice = self.chance.random()
        fate = "lost" if dice < 0.3 else "doubled" if dice < 0.4 else "late" if dice < 0.5 else "sent"
        self.counts[fate] = self.counts.get(fate, 0) + 1
        if fate == "late":
            asyncio.get_running_loop().call_later(0.02, asyncio.ensure_future, super().send(channel, message))
        elif fate != "lost":
            await super().send(channel, message)
            if fate == "doubled":
                await super().send(channel, message)


@pytest.fixture
def lossy(settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Install a lossy channel layer. Returns how many messages it lost, repeated or delayed."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{__name__}.Lossy"}}
    monkeypatch.setattr(hub, "PULSE_SECONDS", 0.05)
    Lossy.counts = {}
    return Lossy.counts


def has_lost_enough(fates: dict[str, int]) -> bool:
    return len(fates) == 4 and min(fates.values()) > 5


async def test_messages_that_are_lost_doubled_and_late(ann: User, lossy: dict[str, int]) -> None:
    """The socket's client ends with the server's events (T-38, I9)."""
    session = await aside(cookie, ann)
    conversation = await aside(start_conversation, ann)
    transcript = Transcript()
    async with following(conversation.pk, session) as socket:
        with recording(ann, conversation) as prompts:
            await socket.listen(transcript, lambda: len(prompts) > 5 and has_lost_enough(lossy))
        await socket.listen(transcript, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


async def test_a_stream_over_a_layer_that_loses(ann: User, lossy: dict[str, int]) -> None:
    """The same for server-sent events, disconnected repeatedly: the client keeps only `Last-Event-ID` (T-38, I9)."""
    key, chance = await aside(key_for, ann), random.Random(38)
    conversation = await aside(start_conversation, ann)
    transcript = Transcript()
    with recording(ann, conversation) as prompts:
        while len(prompts) < 5 or not has_lost_enough(lossy):
            cut = len(transcript.told) + chance.randrange(60)
            await listen_to_stream(transcript, conversation.pk, key, functools.partial(has_had, transcript, cut))
    await listen_to_stream(transcript, conversation.pk, key, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


def has_had(transcript: Transcript, events: int) -> bool:
    return len(transcript.told) > events


async def listen_to_stream(transcript: Transcript, conversation: int, key: str, enough: Callable[[], bool]) -> None:
    """Take events from where the client is, until it has enough."""
    last = {"Last-Event-ID": str(transcript.at)}
    async with streamed(f"/api/conversations/{conversation}/events/", key, **last) as stream:
        async for event in stream.events():
            transcript.take(event)
            if enough():
                break


async def test_catching_up_takes_no_time(ann: User) -> None:
    """A client that was away for 500 events has them within 2 s (T-39)."""
    session, conversation = await aside(cookie, ann), await aside(start_conversation, ann)
    turns = [await aside(record_turn, ann, conversation) for _ in range(25)]
    transcript, began = Transcript(), time.monotonic()
    async with following(conversation.pk, session) as socket:
        await socket.listen(transcript, lambda: transcript.state(turns[-1].prompt.pk) == "completed")
    assert time.monotonic() - began < 2
    assert len(transcript.told) >= 500
