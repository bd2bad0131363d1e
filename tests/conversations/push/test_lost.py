"""Whatever happens to sockets and messages, a client ends with what the server has (I9)."""

from __future__ import annotations

import asyncio
import functools
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from conversations.prompts.start import start_conversation
from conversations.push import hub, listener
from conversations.push.event_reader import EventReader, last_step
from conversations.push.feed import Feed
from conversations.push.listener import Listener
from conversations.push.tailer import Tailer
from conversations.push.topics import Look, Topic
from tests.budget import examples
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

CUTS = examples(100)


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


async def test_a_socket_that_is_cut_again_and_again(ann: User) -> None:
    """Disconnected at random points of running turns, a thousand times at night: no gap, no duplicate (T-39, I9)."""
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
                async with following(conversation.pk, session, transcript.at, transcript) as socket:
                    for _ in range(frames):
                        transcript.take(await socket.event())
        behind.release(1000)
    async with following(conversation.pk, session, transcript.at, transcript) as socket:
        await socket.listen(transcript, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


@pytest.fixture
def fates(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Queues of 1 to 3 messages, listeners that stall, and a tailer that dies, with a message or without.

    Returns how often each of it happened.
    """
    chance, counts = random.Random(38), Counter[str]()
    update, following_on, overflow = Tailer._update, Feed.next, Listener.fall_behind

    def dies(tailer: Tailer, topic: Topic[Any], look: Look) -> None:
        dice = chance.random()
        if dice < 0.06:
            counts["died"] += 1
            if dice < 0.03:
                topic.look(look)  # made, and never published
            sys.exit()
        update(tailer, topic, look)

    async def stalls(feed: Feed[Any, Any]) -> Any:
        monkeypatch.setattr(listener, "QUEUE_MOST", chance.randint(1, 3))
        if chance.random() < 0.2:
            counts["stalled"] += 1
            await asyncio.sleep(chance.random() / 5)
        return await following_on(feed)

    def falls(each: Listener) -> None:
        counts["behind"] += 1
        overflow(each)

    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(Tailer, "_update", dies)
    monkeypatch.setattr(Feed, "next", stalls)
    monkeypatch.setattr(Listener, "fall_behind", falls)
    return counts


def enough(counts: Counter[str]) -> bool:
    return min(counts["died"], counts["stalled"] // 3, counts["behind"] // 3) > 2


DIES = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@DIES
async def test_a_socket_over_full_queues_and_a_tailer_that_dies(ann: User, fates: Counter[str]) -> None:
    """The socket's client ends with the server's events (T-38, I9)."""
    session = await aside(cookie, ann)
    conversation = await aside(start_conversation, ann)
    transcript = Transcript()
    async with following(conversation.pk, session) as socket:
        with recording(ann, conversation) as prompts:
            await socket.listen(transcript, lambda: len(prompts) > 5 and enough(fates))
        await socket.listen(transcript, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


@DIES
async def test_a_stream_over_full_queues_and_a_tailer_that_dies(ann: User, fates: Counter[str]) -> None:
    """The same for server-sent events, disconnected repeatedly: the client keeps only `Last-Event-ID` (T-38, I9)."""
    key, chance = await aside(key_for, ann), random.Random(38)
    conversation = await aside(start_conversation, ann)
    transcript = Transcript()
    with recording(ann, conversation) as prompts:
        while len(prompts) < 5 or not enough(fates):
            cut = len(transcript.told) + chance.randrange(60)
            await listen_to_stream(transcript, conversation.pk, key, functools.partial(has_had, transcript, cut))
    await listen_to_stream(transcript, conversation.pk, key, lambda: transcript.state(prompts[-1]) == "completed")
    await expect_whole(transcript, ann, conversation.pk, prompts)


def has_had(transcript: Transcript, events: int) -> bool:
    return len(transcript.told) > events


async def listen_to_stream(transcript: Transcript, conversation: int, key: str, until: Callable[[], bool]) -> None:
    """Take events from where the client is, until the condition holds."""
    last = {"Last-Event-ID": str(transcript.at)}
    async with streamed(f"/api/conversations/{conversation}/events/", key, **last) as stream:
        transcript.connected(await aside(last_step, conversation))
        async for event in stream.events():
            transcript.take(event)
            if until():
                break


async def test_catching_up_takes_no_time(ann: User) -> None:
    """A client that was away for 500 events has them within 2 s (T-39)."""
    session, conversation = await aside(cookie, ann), await aside(start_conversation, ann)
    turns = [await aside(record_turn, ann, conversation) for _ in range(25)]
    transcript, began = Transcript(), time.monotonic()
    async with following(conversation.pk, session, transcript=transcript) as socket:
        await socket.listen(transcript, lambda: transcript.state(turns[-1].prompt.pk) == "completed")
    assert time.monotonic() - began < 2
    assert len(transcript.told) >= 500
