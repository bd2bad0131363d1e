"""Changes of which no hint arrives: open pages show them within a second, lists a little later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from conversations.accounts import presence
from conversations.database.commits import ChangeNotice, Watch
from conversations.erasure.conversations import erase
from conversations.erasure.steps import redact
from conversations.models import Draft
from conversations.prompts.listing import archive, mark_seen, rename, unarchive
from conversations.push import tailer, topics
from conversations.push.tailer import Tailer
from conversations.push.topics import ApprovalsTopic, ListTopic, Look, PageTopic, Topic
from tests.conversations.listening import Listener, Transcript, aside, cookie, following, opened
from tests.conversations.support import Story, asking, says

pytestmark = pytest.mark.django_db(transaction=True)


class Deaf(Watch):
    """Hears of nothing, as if every hint were lost."""

    def wait(self, seconds: float) -> None:
        time.sleep(0.05)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hint is dropped. Lists are read again every second too, not every ten."""
    monkeypatch.setattr(tailer, "open_watch", Deaf)
    monkeypatch.setattr(tailer, "ALL_SECONDS", 1)


def spoken(owner: User, *words: str) -> Story:
    """Return completed turns in each of which the model said this."""
    story = Story(owner)
    for said in words:
        story = Story(owner, conversation=story.conversation) if said != words[0] else story
        story.asks_model()
        story.answers(says(said))
        story.ends()
    return story


async def shows(socket: Listener, *wanted: str, lacks: str = "") -> str:
    """Return the first frame with all of these and without the other."""
    html = await socket.text()
    while not all(text in html for text in wanted) or (lacks and lacks in html):
        html = await socket.text()
    return html


@pytest.mark.usefixtures("deaf")
async def test_pages_move_within_a_second_though_every_hint_is_lost(ann: User) -> None:
    """What was recorded and what streams (CP25): on the page, in the events, and in the list of who follows none."""
    assert tailer.SWEEP_SECONDS <= 1
    story, session = await aside(Story, ann), await aside(cookie, ann)
    talk, transcript = story.conversation.pk, Transcript()
    async with (
        opened(f"/ws/conversations/{talk}/?after=1", session) as (page, _),
        opened("/ws/me/", session) as (window, _),
        following(talk, session) as socket,
    ):
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "running")
        await aside(story.asks_model)
        draft = {"conversation": story.conversation, "prompt": story.prompt, "path": "1", "attempt": 1, "fence": 1}
        await aside(Draft.objects.create, **draft, text="Half of it", size=10)
        await shows(page, "Half of it")
        await socket.listen(transcript, lambda: "Half of it" in transcript.drafts.values())
        await aside(story.answers, says("The whole of it."))
        await aside(story.ends)
        await shows(page, "The whole of it.")
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "completed")
        await aside(Story, ann, "Something else.")
        await shows(window, "Something else.")
        assert await window.nothing()


@pytest.mark.usefixtures("deaf")
async def test_a_page_shows_what_was_redacted_though_nobody_told_it(ann: User) -> None:
    """Each turn with a redacted step is sent once, however often everything is read."""
    story, session = await aside(spoken, ann, "It is swordfish.", "It was tiddlywinks."), await aside(cookie, ann)
    async with opened(f"/ws/conversations/{story.conversation.pk}/?after=1", session) as (socket, _):
        await shows(socket, "swordfish", "tiddlywinks")
        assert await socket.nothing()
        await aside(redact, story.conversation, [5], ann, "A password.")
        html = await shows(socket, "[redacted]", lacks="swordfish")
        assert f'id="t-{story.prompt.pk}"' not in html, "the other turn is as it was"
        assert await socket.nothing()
        await aside(redact, story.conversation, [12], ann, "Another one.")
        html = await shows(socket, "[redacted]", f'id="t-{story.prompt.pk}"', lacks="tiddlywinks")
        assert html.count('<section class="exchange') == 1
        assert await socket.nothing()


@pytest.mark.usefixtures("deaf")
async def test_what_is_done_with_a_conversation_shows_though_nobody_tells(ann: User) -> None:
    """Renamed (to a title of the same length), archived and unarchived, and seen: in the list and on the page."""
    story, session = await aside(spoken, ann, "It is done."), await aside(cookie, ann)
    await aside(presence.record_presence, ann.pk)
    talk = story.conversation
    address = f"/ws/conversations/{talk.pk}/?after=1"
    async with opened("/ws/me/", session) as (window, _), opened(address, session) as (page, _):
        await shows(window, 'aria-label="unread"')
        await shows(page, 'id="name"')
        for title in ("Harbour books", "Harbour cooks"):
            await aside(rename, talk, title)
            await shows(window, title)
            await shows(page, 'id="name"', f"{title}</h1>")
        await aside(mark_seen, talk.pk, 7)
        await shows(window, "Harbour cooks", lacks='aria-label="unread"')
        await aside(archive, talk)
        await shows(window, "Archived (1)", lacks="Harbour cooks")
        await shows(page, "Unarchive")
        await aside(unarchive, talk)
        await shows(window, "Harbour cooks")
        await shows(page, 'id="menu"', lacks="Unarchive")
        assert await window.nothing()
        assert await page.nothing()


@pytest.mark.parametrize("at", ["_read", "_update"])
async def test_a_look_that_failed_loses_nothing_of_what_was_done(
    ann: User, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The database failed when it was notified: before anything was read, or when it was about to be sent."""
    story, session = await aside(spoken, ann, "It is swordfish."), await aside(cookie, ann)
    original: Callable[..., Any] = getattr(Tailer, at)
    failed: list[object] = []
    armed: list[bool] = []

    def fails_once(self: Tailer, *seen: Any) -> Any:
        told = (getattr(each, name, None) for each in seen for name in ("changed", "everything", "conversations"))
        if armed and not failed and any(told):
            failed.append(seen)
            raise OperationalError("once")
        return original(self, *seen)

    monkeypatch.setattr(Tailer, at, fails_once)
    monkeypatch.setattr(tailer, "AGAIN_SECONDS", 0.05)
    talk = story.conversation
    address = f"/ws/conversations/{talk.pk}/?after=1"
    async with opened("/ws/me/", session) as (window, _), opened(address, session) as (page, _):
        await shows(window, "Look around.")
        await shows(page, "swordfish")
        armed.append(True)
        await aside(redact, talk, [1, 5], ann, "A password.")
        await shows(window, "[redacted]", lacks="Look around.")
        await shows(page, "[redacted]", lacks="swordfish")
    assert failed


async def test_what_was_erased_waits_for_nobody_who_decides(ann: User, kim: User) -> None:
    """A user who decides for others is told at once that it is gone, though nothing is recorded any more."""
    await aside(User.objects.filter(pk=kim.pk).update, is_staff=True)
    story, output = await aside(asking, ann)
    async with opened("/ws/approvals/", await aside(cookie, kim)) as (socket, _):
        for _ in range(2):
            assert '"waiting": 1' in await socket.text()
        await aside(erase, story.conversation, ann)
        assert await socket.text() == topics.approval_changed(output.pk, "", 0)


@pytest.mark.parametrize("told", [True, False])
def test_what_was_erased_is_found_by_people_who_decide(
    ann: User, kim: User, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """By a look that was notified, and if only time has passed."""
    monkeypatch.setattr(topics, "HOLD_SECONDS", 0)
    story, output = asking(ann)
    topic = ApprovalsTopic(kim.pk)
    topic.begin()
    assert topic.look(Look({}, everything=True))
    erase(story.conversation, ann)
    assert topic.look(Look({})) is None
    if not told:
        monkeypatch.setattr(topics, "ALL_SECONDS", 0)
    assert topic.look(Look({}, everything=told)) == [topics.approval_changed(output.pk, "", 0)]


def test_everything_is_looked_at_by_few_queries(ann: User, bob: User, django_assert_num_queries: Any) -> None:
    """For any number of pages and lists: one query for all pages; for all lists, the notices and one more."""
    tailing = Tailer(lambda topic, message: None)
    talks = [spoken(owner, "It is done.").conversation for owner in (ann, ann, bob)]
    pages, lists = [PageTopic(talk.pk) for talk in talks], [ListTopic(owner.pk) for owner in (ann, bob)]
    first = tailing._read([*pages, *lists], ChangeNotice(everything=True))
    assert first.owned
    assert all(page.look(first) for page in pages)
    for each in lists:
        each.begin()
        each.catch_up()
    all_topics: list[Topic[Any]] = [*pages, *lists]
    with django_assert_num_queries(3):
        look = tailing._read(all_topics, ChangeNotice(everything=True))
        assert [each.look(look) for each in all_topics] == [None] * 5
    running = Story(ann, conversation=talks[0])
    pages[0].look(tailing._read([*pages], ChangeNotice(everything=True)))
    draft = {"conversation": talks[0], "prompt": running.prompt, "path": "1", "attempt": 1, "fence": 1}
    running.asks_model()
    Draft.objects.create(**draft, text="Half of it", size=10)
    told = [each.look(tailing._read([*pages], ChangeNotice(everything=True))) for each in pages]
    assert told[0]
    assert "Half of it" in told[0].html
    assert told[1:] == [None, None]
