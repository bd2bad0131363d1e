"""Streaming answers: the deltas of an answer, joined, are its text, whatever happened on the way (R9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.engine.ledger import Step, valid_text
from conversations.models import Draft, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from conversations.push.event_reader import EventReader, SentEvent
from conversations.push.growth import Delta, Growth, KnownDrafts, Missed
from conversations.worker import drafts
from conversations.worker.drafts import Drafts
from tests.budget import examples
from tests.conversations.listening import Transcript, aside, cookie, following, key_for, streamed
from tests.conversations.recorded import in_this_thread, meddle, taken
from tests.conversations.recording import gone
from tests.conversations.support import Story, says

Event = dict[str, Any]
SMILE = "\N{GRINNING FACE}"
"""One Unicode code point: two units of UTF-16, four bytes of UTF-8."""


@asynccontextmanager
async def listening(over: str, owner: User, story: Story, after: int = 0) -> AsyncIterator[Callable[[], Any]]:
    """A client of the conversation, over a socket or a stream: a function to await for the next event."""
    pk = story.conversation.pk
    if over == "socket":
        async with following(pk, await aside(cookie, owner), after) as socket:
            yield socket.event
    else:
        address = f"/api/conversations/{pk}/events/?after={after}"
        async with streamed(address, await aside(key_for, owner)) as stream:
            yield stream.events().__anext__


async def until(next_event: Callable[[], Any], wanted: Callable[[Event], bool]) -> list[Event]:
    """Return the events up to the first matching one."""
    told = [await next_event()]
    while not wanted(told[-1]):
        told.append(await next_event())
    return told


def brings_output(event: Event) -> bool:
    return bool(event["type"] == "output.created")


def is_delta(event: Event) -> bool:
    return bool(event["type"] == "text.delta")


def pieces(told: list[Event]) -> list[tuple[int, str]]:
    return [(event["offset"], event["text"]) for event in told if is_delta(event)]


def grows(story: Story, text: str, *, attempt: int = 1, path: str = "") -> None:
    """A worker writes so much of a draft."""
    place: dict[str, Any] = {
        "conversation": story.conversation,
        "prompt": story.prompt,
        "path": path or str(story.round),
    }
    written = {"attempt": attempt, "fence": 1, "text": text, "size": len(text)}
    Draft.objects.update_or_create(**place, defaults=written)


def answered(story: Story, *said: Step) -> None:
    """The record of the round's answer, with which its draft goes."""
    with transaction.atomic():
        story.answers(*said)
        gone(story, str(story.round))


def asked(owner: User) -> Story:
    story = Story(owner)
    story.asks_model()
    return story


BOTH = pytest.mark.parametrize("over", ["socket", "stream"])
COMMITTED = pytest.mark.django_db(transaction=True)


@COMMITTED
@BOTH
@pytest.mark.parametrize("partial", [False, True])
async def test_the_rest_of_an_answer_comes_before_its_output(ann: User, over: str, partial: bool) -> None:
    """Also of one that a person stopped. Offsets count Unicode code points."""
    story = await aside(asked, ann)
    async with listening(over, ann, story) as next_event:
        await aside(grows, story, f"Hi {SMILE}")
        told = await until(next_event, is_delta)
        said = {"text": f"Hi {SMILE} there, {SMILE}.", "partial": partial}
        await aside(answered, story, Step("model", "text", said))
        told += await until(next_event, brings_output)
    assert pieces(told) == [(0, f"Hi {SMILE}"), (4, f" there, {SMILE}.")]
    assert [event["type"] for event in told[-2:]] == ["text.delta", "output.created"]
    assert {event["path"] for event in told if is_delta(event)} == {told[-1]["output"]["path"]}


@COMMITTED
@BOTH
async def test_an_answer_that_was_never_seen_growing_is_one_piece(ann: User, over: str) -> None:
    """It came whole, or faster than drafts are written. What the system says is no answer."""
    story = await aside(asked, ann)
    async with listening(over, ann, story) as next_event:
        await aside(answered, story, says("All at once."))
        told = await until(next_event, brings_output)
        await aside(story.ends, "failed", "max_rounds", "Stopped after 10 rounds.")
        told += await until(next_event, lambda event: event["type"] == "prompt.failed")
    assert pieces(told) == [(0, "All at once.")]


@COMMITTED
@BOTH
async def test_a_failed_attempt_is_no_part_of_the_answer(ann: User, over: str) -> None:
    """The next attempt answers before a word of it is stored: the text begins anew."""
    story = await aside(asked, ann)
    async with listening(over, ann, story) as next_event:
        await aside(grows, story, "The capital of ")
        told = await until(next_event, is_delta)
        retry = {"attempt": 1, "code": "stream_broken", "message": "Cut.", "wait_seconds": 0.0}
        again = {"attempt": 2}
        await aside(
            story.append, Step("worker:1", "action_retry", retry, "1"), Step("worker:1", "action_start", again, "1")
        )
        await aside(answered, story, says("Paris is the capital of France."))
        told += await until(next_event, brings_output)
    assert pieces(told) == [(0, "The capital of "), (0, "Paris is the capital of France.")]


@COMMITTED
@BOTH
async def test_who_resumes_in_the_middle_gets_the_text_from_its_beginning(ann: User, over: str) -> None:
    """What was had before is replaced: by the draft, or by an answer that came meanwhile, whose event has all of it."""
    story = await aside(asked, ann)
    await aside(grows, story, "One ")
    async with listening(over, ann, story, after=3) as next_event:
        await until(next_event, is_delta)
    await aside(grows, story, "One two ")
    async with listening(over, ann, story, after=3) as next_event:
        assert pieces(await until(next_event, is_delta)) == [(0, "One two ")]
    await aside(answered, story, says("One two three."))
    async with listening(over, ann, story, after=3) as next_event:
        assert pieces(await until(next_event, brings_output)) == []


@COMMITTED
@BOTH
async def test_history_comes_without_its_streaming_text(ann: User, over: str) -> None:
    """Each answer once, with its event; what streams now, and what is answered later, in pieces as ever."""
    story = await aside(asked, ann)
    await aside(answered, story, says("Long ago."))
    await aside(story.asks_model)
    await aside(grows, story, "Just ")
    async with listening(over, ann, story) as next_event:
        told = await until(next_event, is_delta)
        assert [event["output"]["text"] for event in told if brings_output(event)] == ["Long ago."]
        await aside(answered, story, says("Just now."))
        told += await until(next_event, brings_output)
        await aside(story.asks_model)
        await aside(answered, story, says("At once."))
        told += await until(next_event, brings_output)
    assert pieces(told) == [(0, "Just "), (5, "now."), (0, "At once.")]


@COMMITTED
@BOTH
async def test_what_is_answered_before_a_client_has_caught_up_is_streamed(
    ann: User, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was recorded after the client had connected, though it comes with the history."""
    story = await aside(asked, ann)
    read, answers = EventReader.read, [partial(answered, story, says("Meanwhile."))]

    def late(reader: EventReader, until: int | None = None) -> list[SentEvent]:
        if answers:
            answers.pop()()
        return read(reader, until)

    monkeypatch.setattr(EventReader, "read", late)
    async with listening(over, ann, story) as next_event:
        assert pieces(await until(next_event, brings_output)) == [(0, "Meanwhile.")]
    assert answers == []


@COMMITTED
@BOTH
async def test_the_output_of_a_command_streams_at_the_path_of_its_call(ann: User, over: str) -> None:
    """Its result has the whole, which is no text: nothing is added to what streamed."""
    story = await aside(asked, ann)
    call = story.call("shell.run", command="ls")
    await aside(answered, story, call)
    await aside(story.begins, call)
    async with listening(over, ann, story) as next_event:
        await aside(grows, story, "a.txt\n", path=call.path)
        told = await until(next_event, is_delta)
        await aside(story.comes_to, call, {"stdout": "a.txt\nb.txt\n"})
        told += await until(
            next_event, lambda event: event.get("output", {}).get("result", {}).get("type") == "success"
        )
    assert [(event["path"], event["text"]) for event in told if is_delta(event)] == [(call.path, "a.txt\n")]
    assert told[-1]["output"]["result"]["output"]["stdout"] == "a.txt\nb.txt\n"


# Any order of what can happen

TEXT = st.text(st.sampled_from(f"ab {SMILE}\u00e9\x00\ud83d\ude00"), max_size=12)
DOES = st.one_of(
    st.tuples(st.just("says"), TEXT),
    st.sampled_from([("writes", ""), ("looks", ""), ("misses", ""), ("resumes", ""), ("again", ""), ("dies", "")]),
)
ENDS = st.sampled_from(["whole", "other", "cut"])


class Round:
    """A worker that streams an answer, and a client that keeps what deltas say."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt, self.transcript = prompt, Transcript()
        self.tailer, self.client = Growth(), KnownDrafts(present=0)
        self.fence_begins()

    def fence_begins(self) -> None:
        """A worker claims the turn."""
        self.drafts = Drafts(in_this_thread)
        self.growing = self.drafts.of(taken(self.prompt))
        self.attempt, self.said = 1, ""

    def does(self, what: str, text: str) -> None:
        getattr(self, what)(*[text] if text else [])

    def says(self, piece: str = "") -> None:
        self.said += piece
        self.growing.add("1", piece, self.attempt)

    def writes(self) -> None:
        async_to_sync(self.drafts.write)()

    def looks(self) -> None:
        """The tailer publishes what grew, and the client takes it."""
        try:
            self.takes([new for delta in self._grown(self.tailer) if (new := self.client.take(delta))])
        except Missed:
            self.reads()

    def misses(self) -> None:
        """The tailer publishes what grew, and the client, which is slow, gets nothing of it."""
        self._grown(self.tailer)

    def reads(self) -> None:
        """The client reads from the database."""
        self.takes([new for delta in self._grown(Growth()) if (new := self.client.take(delta))])

    def resumes(self) -> None:
        """The client's connection was lost, and it opens another."""
        self.client = KnownDrafts(present=0)
        self.reads()

    def again(self) -> None:
        """The attempt failed."""
        self.attempt, self.said = self.attempt + 1, ""
        self.growing.add("1", "", self.attempt)

    def dies(self) -> None:
        """The worker is lost, and another begins the round anew."""
        meddle("UPDATE conversations_prompt SET lease_until = lease_until - 31")
        self.fence_begins()

    def takes(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            self.transcript.take({"type": delta.type, **delta._asdict()})

    def answers(self, text: str) -> None:
        """The record of the answer, and its event."""
        rest = self.client.complete(self.prompt.pk, "1", text, 9)
        self.takes([rest] if rest else [])

    def _grown(self, growth: Growth) -> list[Delta]:
        return growth.read({self.prompt.conversation_id}).get(self.prompt.conversation_id, [])


@pytest.mark.django_db
@pytest.mark.parametrize("room", [10, drafts.DRAFT_MOST])
@given(does=st.lists(DOES, max_size=25), ends=ENDS, other=TEXT.map(valid_text))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_deltas_of_an_answer_joined_are_its_text(
    ann: User, room: int, does: list[tuple[str, str]], ends: Literal["whole", "other", "cut"], other: str
) -> None:
    """Whatever was streamed, written, lost, begun anew or cut short before."""
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(drafts, "GrowingDraft", partial(drafts.GrowingDraft, room=room))
        streaming = Round(start_prompt(start_conversation(ann), ann, "Go."))
        for what, text in does:
            streaming.does(what, text)
        said = valid_text(streaming.said)
        text = {"whole": said, "cut": said[: len(said) // 2], "other": other}[ends]
        streaming.answers(text)
        assert streaming.transcript.drafts.get((streaming.prompt.pk, "1"), "") == text
        transaction.set_rollback(True)
