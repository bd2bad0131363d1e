"""From catching up to live messages: a client loses nothing in between, whoever else comes and goes."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.core.cache import cache
from django.db import connections
from django.test import AsyncClient

from conversations.accounts.presence import was_ever_present
from conversations.approvals.decisions import decide
from conversations.database import commits
from conversations.database import threads as reader
from conversations.models import ApiKey, Conversation
from conversations.prompts.listing import rename
from conversations.push import access, feed, hub, list_state, listener, share, tailer, topics
from conversations.push.access import Pass
from conversations.push.feed import EventFeed, Feed, PageFeed, PersonFeed, text_of
from conversations.push.hub import Hub
from conversations.push.list_state import ListedConversation, ListState
from conversations.push.listener import Listener
from conversations.push.tailer import Tailer
from conversations.push.topics import ApprovalsTopic, ChangedConversation, EventsTopic, ListTopic, Look
from tests.conversations.listening import (
    PATIENCE_SECONDS,
    aside,
    cookie,
    following,
    holds,
    key_for,
    opened,
    streamed,
)
from tests.conversations.recording import stream
from tests.conversations.support import Story, asking, says

pytestmark = pytest.mark.django_db(transaction=True)


class Client:
    """A client whose reads are controlled by the test."""

    def __init__(self, fed: Feed[Any, Any]) -> None:
        self.feed = fed
        self.had: list[Any] = []
        self.opening = self._frames()

    async def _frames(self) -> AsyncIterator[Any]:
        async for frame in await self.feed.next():
            yield frame

    async def takes(self, frames: AsyncIterator[Any]) -> None:
        """Read all of these frames."""
        async for frame in frames:
            self.had.append(frame)

    async def listens(self, until: Callable[[], bool]) -> None:
        """Take messages until the condition holds."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not until():
                await self.takes(self._frames())

    @property
    def seqs(self) -> list[int]:
        """The steps of the events that it has received."""
        return [told.seq for told in self.had]

    def has(self, text: str) -> bool:
        """Whether the newest frame contains this text."""
        return bool(self.had) and text in text_of(self.had[-1])


@asynccontextmanager
async def client(of: Callable[..., Feed[Any, Any]], person: User, *what: Any) -> AsyncIterator[Client]:
    """A client that has connected but read nothing yet."""
    follows = Listener(Pass(person.pk))
    entered = Hub.enter(follows)
    try:
        yield Client(of(entered, follows, *what))
    finally:
        await entered.leave(follows)


# Two clients of one conversation


@pytest.mark.parametrize("after", [0, 2])
async def test_a_slow_client_loses_nothing_to_one_that_comes_later(ann: User, after: int) -> None:
    """It has read and is at its first event; another client begins the topic two steps later (I9)."""
    story = await aside(Story, ann)
    async with (
        client(EventFeed, ann, story.conversation.pk, 0, 0) as slow,
        client(EventFeed, ann, story.conversation.pk, after, 0) as other,
    ):
        slow.had.append(await anext(slow.opening))
        await aside(story.ends)
        await other.takes(other.opening)
        await slow.takes(slow.opening)
        more = await aside(Story, ann, conversation=story.conversation)
        for each in (slow, other):
            await each.listens(lambda each=each: each.seqs[-1] == 5)  # type: ignore[misc]
        assert more.prompt.pk == slow.had[-1].prompt
    assert slow.seqs == [1, 2, 3, 4, 5]
    assert other.seqs == [seq for seq in slow.seqs if seq > after]


@pytest.mark.parametrize("of", [EventFeed, PageFeed])
async def test_a_topic_that_began_after_a_client_had_read(
    ann: User, of: Callable[..., Feed[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a later step than the client read up to: its first message says so, and the client reads the steps between."""
    go = threading.Event()

    class Late(commits.Watch):
        def wait(self, seconds: float) -> None:
            go.wait(PATIENCE_SECONDS)
            time.sleep(0.05)

    monkeypatch.setattr(tailer, "open_watch", Late)
    story = await aside(Story, ann)
    present = [0] if of is EventFeed else []
    async with client(of, ann, story.conversation.pk, 0, *present) as first:
        await first.takes(first.opening)
        assert first.feed.topic.at is None
        await aside(story.ends)
        go.set()
        if of is EventFeed:
            await first.listens(lambda: first.seqs == [1, 2, 3])
        else:
            await first.listens(lambda: first.has('data-seq="3"'))


class Mute(commits.Watch):
    """A watch that reports nothing."""

    def wait(self, seconds: float) -> None:
        time.sleep(0.05)


async def test_what_was_done_while_a_page_was_read_is_told(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renamed after it was read and before the topic begins: its first message shows it without a notice."""
    monkeypatch.setattr(tailer, "open_watch", Mute)
    story = await aside(Story, ann)
    original = reader.read
    async with client(PageFeed, ann, story.conversation.pk, 1) as page:

        async def overtaken(function: Callable[..., Any], *args: Any) -> Any:
            answer = await original(function, *args)
            await aside(rename, story.conversation, "Harbour books")
            return answer

        monkeypatch.setattr(feed, "read", overtaken)
        await page.takes(page.opening)
        assert not page.has("Harbour books")
        await page.listens(lambda: page.has("Harbour books"))


async def test_a_page_that_another_began_with_another_title(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clients open it while it is renamed: the one with the old title reads again, whichever began the topic."""
    monkeypatch.setattr(tailer, "open_watch", Mute)
    story = await aside(Story, ann)
    original = reader.read
    async with (
        client(PageFeed, ann, story.conversation.pk, 1) as slow,
        client(PageFeed, ann, story.conversation.pk, 1) as other,
    ):

        async def overtaken(function: Callable[..., Any], *args: Any) -> Any:
            monkeypatch.setattr(feed, "read", original)
            answer = await original(function, *args)
            await aside(rename, story.conversation, "Harbour books")
            await other.takes(other.opening)
            return answer

        monkeypatch.setattr(feed, "read", overtaken)
        await slow.takes(slow.opening)
        assert other.has("Harbour books")
        await slow.listens(lambda: slow.has("Harbour books"))


async def test_a_message_of_a_topic_that_has_gone_counts_for_nothing(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tailer reads for a page that leaves meanwhile; the next page begins a topic of the same name."""
    story = await aside(Story, ann)
    looking, go, original = threading.Event(), threading.Event(), EventsTopic.look

    def slow(topic: EventsTopic, look: Look) -> Any:
        if body := original(topic, look):
            looking.set()
            go.wait(PATIENCE_SECONDS)
        return body

    async with client(PersonFeed, ann, ListTopic):  # another page is open: the tailer stays
        async with client(EventFeed, ann, story.conversation.pk, 0, 0) as goes:
            await goes.takes(goes.opening)
            monkeypatch.setattr(EventsTopic, "look", slow)
            await aside(story.ends)
            assert await asyncio.to_thread(looking.wait, PATIENCE_SECONDS)
            monkeypatch.setattr(EventsTopic, "look", original)
        async with client(EventFeed, ann, story.conversation.pk, 0, 0) as comes:
            await comes.takes(comes.opening)
            go.set()
            await aside(Story, ann, conversation=story.conversation)
            await comes.listens(lambda: comes.seqs[-1] == 5)
            assert comes.seqs == [1, 2, 3, 4, 5]


async def test_a_full_queue_sends_a_client_to_the_database(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing more happens that could show it what it lacks."""
    monkeypatch.setattr(listener, "QUEUE_MOST", 1)
    story = await aside(Story, ann)
    async with client(EventFeed, ann, story.conversation.pk, 0, 0) as slow:
        await slow.takes(slow.opening)
        topic, talk = slow.feed.topic, Conversation.objects.filter(pk=story.conversation.pk)
        await holds(lambda: topic.at == talk.get().seq)
        await slow.listens(lambda: not slow.feed.listener._queue)  # what only says where the topic begins
        await aside(story.asks_model)
        await aside(story.answers, says("It is done."))  # a message
        await holds(lambda: topic.at == talk.get().seq)
        await aside(story.ends)  # one too many
        await holds(lambda: topic.at == talk.get().seq)
        await slow.listens(lambda: slow.had[-1].type == "prompt.completed")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_tailer_that_died_with_a_message_loses_nothing(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started again, and its listeners read from the database, though nothing more happens."""
    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(hub, "expired_passes", lambda passes: {})  # the clients of these tests have none that is valid
    original = EventsTopic.look

    def dies(topic: EventsTopic, look: Look) -> Any:
        if message := original(topic, look):
            monkeypatch.setattr(EventsTopic, "look", original)
            sys.exit()
        return message

    story = await aside(Story, ann)
    async with client(EventFeed, ann, story.conversation.pk, 0, 0) as follows:
        await follows.takes(follows.opening)
        await holds(lambda: follows.feed.topic.at == 2)
        monkeypatch.setattr(EventsTopic, "look", dies)
        await aside(story.ends)
        await follows.listens(lambda: follows.seqs[-1] == 3)


# What belongs to a person


def moved_of(conversation: int, owner: User) -> Look:
    """A look with new steps in one conversation."""
    moved = ChangedConversation(owner.pk, 9, 0, running=False, drafted=False, listed=ListedConversation("", None, 0))
    return Look({conversation: moved}, frozenset({conversation}))


async def test_a_list_that_is_what_it_was_is_told_to_who_read_between(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window is opened while something is true that has passed at the next update."""
    said = ["before"]
    standing = ListState("", (0, False))
    monkeypatch.setattr(topics, "read_list", lambda person: (standing, said[0]))
    moved = moved_of(1, ann)
    monkeypatch.setattr(topics, "HOLD_SECONDS", 0)
    monkeypatch.setattr(Tailer, "_update", lambda tailer, topic, look: None)
    async with client(PersonFeed, ann, ListTopic) as window:
        await window.takes(window.opening)
        topic = window.feed.topic
        assert topic.look(moved) == ["before"]
        assert topic.look(moved) is None
        async with client(PersonFeed, ann, ListTopic) as between:
            said[0] = "between"
            await between.takes(between.opening)
            said[0] = "before"
            assert topic.look(moved) == ["before"]
            assert topic.look(moved) is None


async def test_a_list_that_cannot_be_made_is_not_tried_without_end(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch was turned and reading the list fails once: then nothing is known until a follower has caught up."""
    monkeypatch.setattr(topics, "HOLD_SECONDS", 0)
    topic, turned = topics.ListTopic(ann.pk), Look({}, notices=(1, False))
    topic.begin()
    monkeypatch.setattr(topics, "read_list", lambda person: (ListState("", (0, False)), "working"))
    topic.catch_up()
    monkeypatch.setattr(topics, "read_list", lambda person: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        topic.look(turned)
    assert topic.look(turned) is None
    monkeypatch.setattr(topics, "read_list", lambda person: (ListState("", (0, False)), "working"))
    topic.catch_up()
    monkeypatch.setattr(topics, "read_list", lambda person: (ListState("", (1, False)), "stopped"))
    assert topic.look(turned) == ["stopped"]
    assert topic.look(turned) is None


def test_a_list_and_its_standing_tell_the_same_of_the_disk(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it was full only for a moment: otherwise the notice would never be removed."""
    moment = iter([False, True])
    monkeypatch.setattr(list_state, "is_short", lambda: next(moment))
    monkeypatch.setattr("conversations.pages.chat.live.is_short", lambda: next(moment))
    standing, html = topics.read_list(ann.pk)
    assert not standing.notices[1]
    assert "disk is full" not in html


def test_what_all_must_know_is_read_once_for_all_people(
    ann: User, bob: User, kim: User, django_assert_num_queries: Any
) -> None:
    """For any number of lists: one query each for notices and digests; and none if nothing changed.

    One more counts what waits for a person who decides for others.
    """
    tailer = Tailer(lambda topic, message: None)
    lists = [topics.ListTopic(person.pk) for person in (ann, bob, kim)]
    for each in lists:
        each.begin()
        each.catch_up()
    lists[2].look(Look({}, recount=True))
    with django_assert_num_queries(3):
        look = tailer._read([*lists], commits.ChangeNotice(everything=True))
        assert [each.look(look) for each in lists] == [None] * len(lists)
    with django_assert_num_queries(0):
        look = tailer._read([*lists], commits.ChangeNotice())
        assert [each.look(look) for each in lists] == [None] * len(lists)


def test_who_may_no_longer_decide_for_others_is_not_told_how_many_wait(
    ann: User, kim: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing else changes on their page."""
    topic = ListTopic(kim.pk)
    topic.begin()
    topic.catch_up()
    asking(ann)
    topic.look(Look({}, recount=True))
    asking(ann)
    told = topic.look(Look({}, recount=True)) or []
    assert 'data-v="2"' in "".join(told)
    kim.user_permissions.clear()
    monkeypatch.setattr(topics, "ALL_SECONDS", 0)
    told = topic.look(Look({}, recount=True)) or []
    assert 'data-v="0"' in "".join(told)


async def test_approvals_that_are_what_they_were_are_told_to_who_read_between(
    kim: User, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for people who decide: the number of waiting approvals is right again for all of them."""
    monkeypatch.setattr(topics, "HOLD_SECONDS", 0)
    monkeypatch.setattr(Tailer, "_update", lambda tailer, topic, look: None)
    async with client(PersonFeed, kim, ApprovalsTopic) as window:
        await window.takes(window.opening)
        topic = window.feed.topic
        assert await aside(topic.look, Look({}, everything=True)) == window.had
        story, output = await aside(asking, ann)
        moved = moved_of(story.conversation.pk, ann)
        async with client(PersonFeed, kim, ApprovalsTopic) as between:
            await between.takes(between.opening)
            assert '"waiting": 1' in between.had[-1]
            await aside(decide, output.pk, ann, "reject", digest=output.digest, via="page")
            assert await aside(topic.look, moved) == window.had
            assert await aside(topic.look, moved) is None


def test_approvals_are_read_of_the_conversations_that_moved(
    kim: User, ann: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    """Not everything that waits on the site, and not for each step of a running turn."""
    for _ in range(3):
        asking(ann)
    topic = ApprovalsTopic(kim.pk)
    topic.begin()
    told = topic.look(Look({}, everything=True))
    assert told
    assert '"waiting": 3' in told[0]
    monkeypatch.setattr(topics, "HOLD_SECONDS", 3600)
    story, output = asking(ann)
    moved = moved_of(story.conversation.pk, ann)
    with django_assert_num_queries(0):
        assert topic.look(moved) is None  # too soon
    monkeypatch.setattr(topics, "HOLD_SECONDS", 0)
    with django_assert_num_queries(4) as queries:  # the person, their permissions, the gates, what became of others
        told = topic.look(Look({}))
    assert told == [topics.approval_changed(output.pk, "pending", 4)]
    assert any(f"IN ({story.conversation.pk})" in each["sql"] for each in queries.captured_queries)


# What fails once, and what waits


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Access is checked again all the time."""
    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.05)


@pytest.mark.usefixtures("often")
async def test_one_failure_does_not_end_the_checks(
    ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever failed: the next check ends those who may not listen (T-43)."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    original, failed = access.expired_passes, asyncio.Event()
    loop = asyncio.get_running_loop()

    def fails_once(passes: Any) -> dict[Pass, int]:
        monkeypatch.setattr(hub, "expired_passes", original)
        loop.call_soon_threadsafe(failed.set)
        raise ValueError("once")

    monkeypatch.setattr(hub, "expired_passes", fails_once)
    async with following(story.conversation.pk, session) as socket:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await failed.wait()
        await aside(User.objects.filter(pk=ann.pk).update, is_active=False)
        assert await socket.closed() == 4401
    assert "checking who may listen failed" in caplog.text


@contextmanager
def locked() -> Iterator[None]:
    """Another connection writes to the database for a long time."""
    with closing(sqlite3.connect(connections["default"].settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.skipif(
    connections["default"].vendor != "sqlite", reason="only SQLite has one lock for all that is written"
)
async def test_nobody_waits_for_what_is_noted_down(ann: User) -> None:
    """While another process writes, clients are admitted by session and key; what they did is written afterwards."""
    story, session, key = await aside(Story, ann), await aside(cookie, ann), await aside(key_for, ann)
    address = f"/ws/conversations/{story.conversation.pk}/?format=json"
    async with opened("/ws/me/", session) as (page, _):
        await page.text()
        with locked():
            began = time.monotonic()
            await page.says('{"looking": true}')
            async with opened(address, origin=None, key=key) as (program, _):
                assert (await program.event())["type"] == "prompt.created"
            async with following(story.conversation.pk, session) as other:
                assert (await other.event())["type"] == "prompt.created"
            async with streamed(f"/api/conversations/{story.conversation.pk}/events/", key) as stream:
                assert (await anext(stream.events()))["type"] == "prompt.created"
            assert time.monotonic() - began < 10
            assert not await aside(was_ever_present, ann.pk)
        await holds(was_ever_present, ann.pk)
        await holds(lambda: ApiKey.objects.get().used_at)


# One person's share


async def test_a_person_has_no_more_than_their_share(ann: User, bob: User, settings: Any) -> None:
    """Of sockets and streams together; closing one makes room, and other users have their own limit."""
    settings.AGENTSITE_STREAMS = 2
    story, session, key = await aside(Story, ann), await aside(cookie, ann), await aside(key_for, ann)
    address = f"/api/conversations/{story.conversation.pk}/events/"
    async with opened("/ws/me/", session), streamed(address, key) as stream:
        assert (await anext(stream.events()))["type"] == "prompt.created"
        async with opened("/ws/me/", session) as (third, _):
            assert await third.closed() == 4429
        answer = await asked(address, key)
        assert answer.status_code == 429
        assert answer.json()["error"]["code"] == "throttled"
        assert int(answer["Retry-After"]) == answer.json()["error"]["retry_after"] > 0
        async with opened("/ws/me/", await aside(cookie, bob)) as (other, _):
            await other.text()
    async with opened("/ws/me/", session) as (again, _):
        await again.text()


async def asked(address: str, key: str) -> Any:
    """Return the answer to a program."""
    return await AsyncClient().get(address, headers={"Authorization": f"Bearer {key}"})


async def test_streams_are_requests_like_others(ann: User, settings: Any) -> None:
    """They count against the limit like others, and so do requests without a user."""
    settings.AGENTSITE_API_REQUESTS = 3
    cache.clear()
    story, key = await aside(Story, ann), await aside(key_for, ann)
    await aside(story.ends)
    for who in (key, "agk_wrong"):
        got = [await asked(f"/api/prompts/{story.prompt.pk}/events/?after=99", who) for _ in range(4)]
        assert [answer.status_code for answer in got][-1] == 429
        assert 429 not in [answer.status_code for answer in got][:-1]
        assert int(got[-1]["Retry-After"]) == got[-1].json()["error"]["retry_after"]


async def test_all_pages_of_a_person_refresh_no_more_often_than_one(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "REFRESHES_MOST", 3)
    story, session = await aside(Story, ann), await aside(cookie, ann)
    address = f"/ws/conversations/{story.conversation.pk}/"
    async with opened(address, session) as (one, _), opened(address, session) as (other, _):
        for socket in (one, one, one, other):
            await socket.says('{"refresh": 0}')
            if socket is one:
                await socket.text()
        assert await other.closed() == 4429


async def test_what_nobody_follows_is_forgotten(ann: User) -> None:
    """However many conversations were followed, the tailer remembers only the current ones."""
    async with client(PersonFeed, ann, ListTopic):
        tailer = Hub.current().tailer
        for _ in range(3):
            story = await aside(Story, ann)
            await aside(stream, story, "1", "Hello there.")
            async with client(EventFeed, ann, story.conversation.pk, 0, 0) as follows:
                await follows.takes(follows.opening)
                await holds(lambda: list(tailer._growth._known.values()) != [])
        await holds(lambda: not tailer._growth._known)


# Threads and connections


async def test_an_open_stream_holds_no_thread(ann: User) -> None:
    """Django keeps one for each request until it ends, and a stream may last for hours (T-42)."""
    story, key = await aside(Story, ann), await aside(key_for, ann)
    async with AsyncExitStack() as stack:
        threads = threading.active_count()
        for _ in range(20):
            told = await stack.enter_async_context(served(f"/api/conversations/{story.conversation.pk}/events/", key))
            assert b"prompt.created" in await told
        assert threading.active_count() - threads < 10


@asynccontextmanager
async def served(address: str, key: str) -> AsyncIterator[Any]:
    """Open a stream as a server would, and wait for its first event."""
    scope = {
        "type": "http", "method": "GET", "path": address, "raw_path": address.encode(), "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"authorization", f"Bearer {key}".encode())],
    }  # fmt: skip
    made: Any = ApplicationCommunicator
    server = made(get_asgi_application(), scope)
    await server.send_input({"type": "http.request", "body": b""})

    async def first() -> bytes:
        parts = [await server.receive_output(PATIENCE_SECONDS) for _ in range(3)]
        assert parts[0]["status"] == 200
        return bytes(parts[2]["body"])

    try:
        yield first()
    finally:
        await server.send_input({"type": "http.disconnect"})
        await server.wait(PATIENCE_SECONDS)
