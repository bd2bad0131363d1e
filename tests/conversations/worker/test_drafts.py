"""Text on its way: drafts grow while a round or a command runs, and go with the record that brings the whole."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import DataError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from agents.engine.agent import attempts
from agents.engine.errors import Cancelled, ProviderError
from agents.engine.interfaces.provider import Answer, Request, TextDelta
from agents.engine.ledger import Step
from conversations.ledger.claims import Claim
from conversations.ledger.group_commit import GroupCommit, PromptJournal
from conversations.models import Draft, Output, Prompt, State
from conversations.models import Step as StepRow
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.verification.rules import problems_of
from conversations.verification.stored import verify
from conversations.worker.drafts import DRAFT_MOST, Drafts, PromptDrafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, in_this_thread, meddle, place, record, said, taken
from tests.engine.cast import site as cast_site
from tests.engine.support import ScriptedProvider, call, says
from tests.idle import new_drain, until_idle

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


@pytest.fixture
def held(prompt: Prompt) -> Claim:
    return taken(prompt)


@pytest.fixture
def drafts() -> Drafts:
    return Drafts(in_this_thread)


@pytest.fixture
def growing(drafts: Drafts, held: Claim) -> PromptDrafts:
    return drafts.of(held)


def write(drafts: Drafts) -> bool:
    """A tenth of a second has passed."""
    return async_to_sync(drafts.write)()


def stored(path: str = "1") -> tuple[str, int]:
    """The text of the draft at a path, and which attempt's it is."""
    draft = Draft.objects.get(path=path)
    assert draft.size == len(draft.text)
    return draft.text, draft.attempt


def records(held: Claim, prompt: Prompt, drafts: PromptDrafts, *steps: Step) -> None:
    """The claim's worker records these steps."""
    at = place(prompt)
    journal = PromptJournal(at, held.fence, GroupCommit(in_this_thread), drafts.close)
    async_to_sync(journal.record)(record(prompt, at, *steps))


CALL = Step("runtime", "action_call", {"policy": "x", "payload": {}}, path="1")
RESULT = Step("runtime", "action_result", {"output": None}, path="1")
END = Step("runtime", "action_result", {"state": "completed", "stop_reason": "text"})


# What is written


def test_pieces_are_appended(drafts: Drafts, growing: PromptDrafts, prompt: Prompt) -> None:
    for piece in ("It ", "is ", "\N{GRINNING FACE}"):
        growing.add("1", piece, 1)
    write(drafts)
    assert stored() == ("It is \N{GRINNING FACE}", 1)
    growing.add("1", ", \u00e9.", 1)
    write(drafts)
    assert stored() == ("It is \N{GRINNING FACE}, \u00e9.", 1)
    draft = Draft.objects.get()
    assert (draft.conversation_id, draft.prompt_id, draft.fence) == (prompt.conversation_id, prompt.pk, 1)


def inserts(seen: CaptureQueriesContext) -> int:
    return sum("INSERT INTO conversations_draft" in query["sql"] for query in seen.captured_queries)


def test_all_that_grew_is_written_by_one_statement(
    ann: User, drafts: Drafts, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Of all prompts and paths; what did not grow is left alone, and nothing costs nothing."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(20)]
    each = [drafts.of(taken(prompt)) for prompt in prompts]
    for one in each:
        one.add("1", "One.", 1)
        one.add("1/0", "Two.", 1)
    with CaptureQueriesContext(connection) as seen:
        write(drafts)
    assert inserts(seen) == 1
    assert Draft.objects.filter(text__in=["One.", "Two."]).count() == 40
    each[0].add("1", " Three.", 1)
    with CaptureQueriesContext(connection) as seen:
        write(drafts)
    assert inserts(seen) == 1
    assert str(seen.captured_queries).count("Three") == 1
    assert "Two" not in str(seen.captured_queries)
    with django_assert_num_queries(0):
        write(drafts)


def test_thousands_are_written(ann: User, drafts: Drafts, growing: PromptDrafts) -> None:
    """More than one statement takes parameters for."""
    for number in range(7000):
        growing.add(f"1/{number}", "x", 1)
    write(drafts)
    assert Draft.objects.count() == 7000


def test_what_no_database_takes_is_replaced(drafts: Drafts, growing: PromptDrafts) -> None:
    for piece in ("a\x00b", "\ud83d", "\ude00", " \udfff"):
        growing.add("1", piece, 1)
    write(drafts)
    assert stored() == ("a\ufffdb\N{GRINNING FACE} \ufffd", 1)
    growing.add("1", ".", 1)
    write(drafts)
    assert stored() == ("a\ufffdb\N{GRINNING FACE} \ufffd.", 1)


def test_a_draft_has_an_end(drafts: Drafts, growing: PromptDrafts) -> None:
    """A command that prints for ever fills neither memory nor database; its record brings what is kept of it."""
    for _ in range(5):
        growing.add("1", "x" * (DRAFT_MOST // 3), 1)
        write(drafts)
    assert stored() == ("x" * DRAFT_MOST, 1)
    growing.add("1", "x", 1)
    assert not growing.take()


def test_another_attempt_begins_anew(drafts: Drafts, growing: PromptDrafts) -> None:
    """A piece of the one before that comes late is no part of it."""
    growing.add("1", "First, a long one.", 1)
    write(drafts)
    growing.add("1", "Second.", 2)
    growing.add("1", " Still first.", 1)
    write(drafts)
    assert stored() == ("Second.", 2)
    growing.add("1", "", 3)
    write(drafts)
    assert stored() == ("", 3)


def test_an_attempt_that_said_nothing_leaves_none(drafts: Drafts, growing: PromptDrafts) -> None:
    growing.add("1", "", 2)
    write(drafts)
    assert not Draft.objects.exists()


def test_tools_in_threads_of_their_own_may_draft(drafts: Drafts, growing: PromptDrafts) -> None:
    def say() -> None:
        for _ in range(2000):
            growing.add("1", "x", 1)

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        write(drafts)
    write(drafts)
    assert stored() == ("x" * 8000, 1)


# Who may write


def test_a_worker_without_the_claim_writes_none(drafts: Drafts, growing: PromptDrafts, prompt: Prompt) -> None:
    """T-23, I8: the claim has passed to another worker."""
    meddle("UPDATE conversations_prompt SET lease_until = 0")
    other = drafts.of(taken(prompt))
    growing.add("1", "From the old one.", 1)
    write(drafts)
    assert not Draft.objects.exists()
    growing.add("1", " More.", 1)
    other.add("1", "From the new one.", 1)
    write(drafts)
    assert stored() == ("From the new one.", 1)


def test_a_worker_whose_lease_ran_out_writes_none(drafts: Drafts, growing: PromptDrafts) -> None:
    """T-23, I8."""
    growing.add("1", "In time.", 1)
    write(drafts)
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - 31")
    growing.add("1", " Too late.", 1)
    write(drafts)
    assert stored() == ("In time.", 1)


def test_a_new_claim_begins_without_drafts(drafts: Drafts, growing: PromptDrafts, prompt: Prompt) -> None:
    """CP07: what a lost worker had heard is no part of anything."""
    growing.add("1", "From a worker that was lost.", 1)
    write(drafts)
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - 31")
    taken(prompt)
    assert not Draft.objects.exists()


# When they go


def test_a_draft_goes_with_the_record_of_its_path(
    drafts: Drafts, growing: PromptDrafts, held: Claim, prompt: Prompt
) -> None:
    """A reload never shows both. Pieces that waited are not written any more, nor those that come late."""
    growing.add("1", "One.", 1)
    growing.add("1/0", "Other.", 1)
    write(drafts)
    growing.add("1", " Two.", 1)
    records(held, prompt, growing, CALL, said("One. Two."), RESULT)
    assert [draft.path for draft in Draft.objects.all()] == ["1/0"]
    growing.add("1", " Three.", 1)
    write(drafts)
    assert [draft.path for draft in Draft.objects.all()] == ["1/0"]


def test_a_draft_stays_where_the_record_is_refused(
    drafts: Drafts, growing: PromptDrafts, held: Claim, prompt: Prompt
) -> None:
    """And goes with the next one that is not: the writer was behind, and writes again."""
    growing.add("1", "One.", 1)
    write(drafts)
    at = place(prompt)
    behind = PromptJournal(at, held.fence, GroupCommit(in_this_thread), growing.close)
    late = record(prompt, at, CALL, RESULT)
    records(held, prompt, growing, said("Somebody else's."))
    with pytest.raises(Exception, match="appended by others"):
        async_to_sync(behind.record)(late)
    assert Draft.objects.count() == 1
    records(held, prompt, growing, CALL, RESULT)
    assert not Draft.objects.exists()


def test_all_drafts_of_a_turn_go_with_its_end(
    ann: User, drafts: Drafts, growing: PromptDrafts, held: Claim, prompt: Prompt
) -> None:
    other = drafts.of(taken(start_prompt(start_conversation(ann), ann, "Go.")))
    for path in ("1", "1/0", "2"):
        growing.add(path, "x", 1)
        other.add(path, "x", 1)
    write(drafts)
    records(held, prompt, growing, END)
    assert set(Draft.objects.values_list("prompt_id", flat=True)) == {other.claim.prompt}


def test_a_record_that_joins_those_before_a_write_leaves_no_draft(ann: User, held: Claim, prompt: Prompt) -> None:
    """The thread is busy; a record waits for it, then a write, then a record that is committed with the first one."""
    other = start_prompt(start_conversation(ann), ann, "Go.")
    claims, places = [taken(other), held], [place(other), place(prompt)]
    said_first, ended = record(other, places[0], said()), record(prompt, places[1], CALL, said("One."), RESULT)

    async def run() -> None:
        thread, asked = asyncio.Lock(), []

        async def write(function: Callable[..., Any], *args: Any) -> Any:
            asked.append(function)
            async with thread:  # one after the other, in this order
                return await in_this_thread(function, *args)

        async def start(work: Awaitable[object], jobs: int) -> asyncio.Future[object]:
            task = asyncio.ensure_future(work)
            while len(asked) < jobs:  # noqa: ASYNC110 - the other tasks of this loop
                await asyncio.sleep(0)
            return task

        commit, drafts = GroupCommit(write), Drafts(write)
        growing = [drafts.of(claim) for claim in claims]
        first, second = (
            PromptJournal(at, claim.fence, commit, each.close)
            for at, claim, each in zip(places, claims, growing, strict=True)
        )
        growing[1].add("1", "One.", 1)
        async with thread:
            work = [await start(first.record(said_first), 1), await start(drafts.write(), 2)]
            work.append(await start(second.record(ended), 2))
            await asyncio.sleep(0)
        await asyncio.gather(*work)

    async_to_sync(run)()
    assert not Draft.objects.exists()


def test_a_record_without_drafts_asks_for_none(
    growing: PromptDrafts, held: Claim, prompt: Prompt, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """A round's cost is that of its record: the conversation, the prompt, the steps, the outputs."""
    at = place(prompt)
    journal = PromptJournal(at, held.fence, GroupCommit(in_this_thread), growing.close)
    new = record(prompt, at, CALL, said(), RESULT)
    waits = connection.vendor == "postgresql"  # it says how long it waits for a lock
    with django_assert_num_queries(6 + waits) as seen:  # with the savepoint, which stands for the transaction
        async_to_sync(journal.record)(new)
    assert "draft" not in str(seen.captured_queries)


# What goes wrong


@dataclass
class Failing:
    """The database, which fails as often as it is told to."""

    errors: list[Exception] = field(default_factory=list)

    async def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        def work() -> Any:
            with connection.execute_wrapper(self._fail):
                return function(*args)

        return await in_this_thread(work)

    def _fail(self, execute: Callable[..., Any], *statement: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return execute(*statement)


def test_where_the_database_does_not_answer_the_pieces_are_kept(held: Claim) -> None:
    drafts = Drafts(Failing([OperationalError("gone"), OperationalError("gone")]))
    growing = drafts.of(held)
    growing.add("1", "One. ", 1)
    assert not write(drafts)
    growing.add("1", "Two. ", 1)
    assert not write(drafts)
    growing.add("1", "Three.", 1)
    assert write(drafts)
    assert stored() == ("One. Two. Three.", 1)


def test_a_write_whose_answer_was_lost_is_not_written_twice(held: Claim) -> None:
    """It was committed, and the connection broke before that was known."""

    async def loses_answers(function: Callable[..., Any], *args: Any) -> Any:
        answer = await in_this_thread(function, *args)
        if answers.pop(0) == "lost":
            raise OperationalError("gone")
        return answer

    answers = ["heard", "lost", "heard"]
    drafts = Drafts(loses_answers)
    growing = drafts.of(held)
    for piece in ("One. ", "Two. ", "Three."):
        growing.add("1", piece, 1)
        write(drafts)
    assert stored() == ("One. Two. Three.", 1)


def test_what_the_database_refuses_stops_no_other(held: Claim) -> None:
    drafts = Drafts(Failing([DataError("no text of this kind")]))
    growing = drafts.of(held)
    growing.add("1", "Refused.", 1)
    assert write(drafts)
    growing.add("2", "Taken.", 1)
    write(drafts)
    assert stored("2") == ("Taken.", 1)


# Turns


@dataclass
class Streaming(ScriptedProvider):
    """A model that speaks word by word; `between` happens before the first and after each, told how many there were."""

    between: Callable[[int], Awaitable[None]] = field(kw_only=True)

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        self.asked.append(request)
        answer = self._answer(request)
        assert isinstance(answer, Answer)
        await self.between(0)
        for number, word in enumerate(answer.text.split(), 1):
            yield TextDelta(f"{word} ")
            await self.between(number)
        yield answer


@dataclass
class Stage:
    """A turn whose model speaks while a test looks, under one claim after the other."""

    prompt: Prompt
    drafts: Drafts
    provider: Streaming | None = None
    runner: Runner | None = None

    def speaks(self, site: Site, *script: Any, between: Callable[[int], Awaitable[None]]) -> None:
        self.provider = Streaming(list(script), between=between)
        registry, _ = cast_site(self.provider, site.world.tools())
        site.monkeypatch.setattr("agents.registry.policies", lambda: registry)

    def works(self) -> None:
        self.runner = Runner(taken(self.prompt), "worker:test", in_this_thread, self.drafts, lambda: True)
        async_to_sync(self.runner)()
        self.prompt.refresh_from_db()

    async def stopped_by(self, who: User) -> None:
        """Somebody stops the turn, and its worker sees it: nothing more is said."""
        await in_this_thread(cancel_prompt, self.prompt.pk, who)
        assert self.runner
        self.runner.stop(Cancelled())
        await asyncio.Event().wait()

    def texts(self) -> list[tuple[str, bool]]:
        """What the model said in the turn, and whether it was stopped there."""
        outputs = Output.objects.filter(prompt=self.prompt, type="text").order_by("position")
        return [(output.content["text"], output.content["partial"]) for output in outputs]

    def sound(self) -> None:
        """The ledger is what it must be, and nothing is on its way."""
        assert verify(self.prompt.conversation_id).problems == []
        assert not Draft.objects.exists()


@pytest.fixture
def stage(prompt: Prompt, drafts: Drafts) -> Stage:
    return Stage(prompt, drafts)


def test_an_answer_shows_as_it_comes_and_whole_at_its_end(stage: Stage, site: Site) -> None:
    """T-29: nobody looks any more after three words; who comes later finds all of it, once."""
    seen: list[str] = []

    async def looks(number: int) -> None:
        if 1 <= number <= 3:
            await stage.drafts.write()
            seen.append((await in_this_thread(stored))[0])

    stage.speaks(site, says("One two three four five."), between=looks)
    stage.works()
    assert seen == ["One ", "One two ", "One two three "]
    assert stage.texts() == [("One two three four five.", False)]
    assert stage.prompt.state == State.COMPLETED
    stage.sound()


def test_what_had_been_said_when_a_person_stops_it_is_kept_and_marked(ann: User, stage: Stage, site: Site) -> None:
    """T-29: a stop in mid-stream."""

    async def stops(number: int) -> None:
        if number == 3:
            await stage.drafts.write()
            await stage.stopped_by(ann)

    stage.speaks(site, says("One two three four five."), between=stops)
    stage.works()
    assert (stage.prompt.state, stage.prompt.stop_reason) == (State.CANCELLED, "cancelled")
    assert stage.texts() == [("One two three ", True)]
    steps = StepRow.objects.filter(prompt=stage.prompt).order_by("seq")
    assert [(step.path, step.type) for step in steps][-4:] == [
        ("", "cancel"),
        ("1", "text"),
        ("1", "action_result"),
        ("", "action_result"),
    ]
    stage.sound()


def test_the_model_is_told_that_it_was_stopped(ann: User, stage: Stage, site: Site) -> None:
    async def stops(number: int) -> None:
        if number == 2 and stage.prompt.number == 1:
            await stage.stopped_by(ann)

    stage.speaks(site, says("One two three four five."), between=stops)
    stage.works()
    stage.prompt = start_prompt(stage.prompt.conversation, ann, "Go on.")
    stage.speaks(site, lambda request: says("Three."), between=stops)
    stage.works()
    assert stage.provider
    assert b"One two \\n[This answer was stopped here.]" in b"".join(stage.provider.asked[0].history)
    stage.sound()


def test_a_stop_before_the_first_word_keeps_nothing(ann: User, stage: Stage, site: Site) -> None:
    async def stops(number: int) -> None:
        await stage.stopped_by(ann)

    stage.speaks(site, says("One two three."), between=stops)
    stage.works()
    assert stage.prompt.state == State.CANCELLED
    assert stage.texts() == []
    stage.sound()


def test_a_broken_stream_begins_anew_and_is_no_part_of_the_answer(
    stage: Stage, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP07: an error in mid-stream; what is shown is emptied with the retry, before the model speaks again."""
    monkeypatch.setattr(attempts, "BACKOFF_SECONDS", (0.0,))
    shown: list[tuple[str, int]] = []
    asked = 0

    async def breaks(number: int) -> None:
        nonlocal asked
        if number == 0:
            asked += 1
        await stage.drafts.write()
        if (number, asked) in ((0, 2), (1, 2), (2, 1)):
            shown.append(await in_this_thread(stored))
        if (number, asked) == (2, 1):
            raise ProviderError("cut", code="stream_broken", retryable=True)

    stage.speaks(site, says("One two three."), between=breaks)
    stage.works()
    assert shown == [("One two ", 1), ("", 2), ("One ", 2)]
    assert stage.texts() == [("One two three.", False)]
    stage.sound()


def test_a_stop_after_a_broken_stream_keeps_what_was_said_after_it(
    ann: User, stage: Stage, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP07: the partial of a stream that broke never becomes text."""
    monkeypatch.setattr(attempts, "BACKOFF_SECONDS", (0.0,))
    broken = False

    async def breaks_then_stops(number: int) -> None:
        nonlocal broken
        if number == 3 and not broken:
            broken = True
            raise ProviderError("cut", code="stream_broken", retryable=True)
        if number == 2 and broken:
            await stage.stopped_by(ann)

    stage.speaks(site, says("One two three."), between=breaks_then_stops)
    stage.works()
    assert stage.texts() == [("One two ", True)]
    stage.sound()


def test_a_worker_lost_in_mid_stream_leaves_no_text(stage: Stage, site: Site) -> None:
    """CP07: the draft goes with the next claim, and the answer is the one that came whole."""
    lost = False

    async def lost_once(number: int) -> None:
        nonlocal lost
        if number == 2 and not lost:
            lost = True
            await stage.drafts.write()
            raise OSError("as if the process were gone")

    stage.speaks(site, says("One two three."), between=lost_once)
    with site.monkeypatch.context() as context:
        context.setattr("agents.engine.runtime.run.Run.fail", _dies)
        stage.works()
    assert stored() == ("One two ", 1)
    assert stage.texts() == []
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - 31")
    stage.works()
    assert stage.texts() == [("One two three.", False)]
    stage.sound()


async def _dies(*args: Any) -> None:
    raise OSError("as if the process were gone")


def test_a_part_of_an_answer_stands_only_where_it_was_stopped() -> None:
    """By a person, or because its time was up; CP07: the rules that every ledger keeps."""
    started = Step("worker:1", "action_start", {"attempt": 1}, path="1", id=3)
    call_ = Step("runtime", "action_call", {"policy": "model", "payload": {"round": 1}}, path="1", id=2)
    root = Step("user:1", "action_call", {"policy": "agent", "payload": {}}, id=1)
    cancel = Step("user:1", "cancel", {}, id=4)
    part = Step("model", "text", {"text": "One", "partial": True}, path="1", id=5)
    failed = Step("runtime", "action_result", {"error": True, "code": "cancelled", "message": ""}, path="1", id=6)
    answered = Step("model", "action_result", {"usage": {}, "model": "x", "finish": "stop"}, path="1", id=6)
    assert problems_of([root, call_, started, cancel, part, failed]) == []
    assert "nobody stopped" in str(problems_of([root, call_, started, part, failed]))
    late = Step("runtime", "action_result", {"error": True, "code": "timeout", "message": ""}, path="1", id=6)
    assert problems_of([root, call_, started, part, late]) == []
    again = Step("worker:1", "action_start", {"attempt": 2}, path="1", id=6)
    assert "stopped midway" in str(problems_of([root, call_, started, part, again]))
    assert "never asked" in str(problems_of([root, call_, cancel, part]))
    assert "stopped midway" in str(problems_of([root, call_, started, cancel, part, answered]))


def test_the_output_of_a_tool_shows_as_it_comes(ann: User, stage: Stage, site: Site) -> None:
    """At the path of its call; gone with its result."""
    seen: list[str] = []

    async def nothing(number: int) -> None:
        """The model is not what is looked at."""

    async def prints(call_: Any) -> None:
        call_.draft("Line one.\n")
        await stage.drafts.write()
        seen.append((await in_this_thread(stored, "1/0"))[0])

    stage.speaks(site, says("", call("fx.read", a=1)), says("Done."), between=nothing)
    site.world.at["fx.read"] = prints
    stage.works()
    assert seen == ["Line one.\n"]
    stage.sound()


def test_what_is_no_text_is_the_error_of_the_tool_that_drafts_it(ann: User, stage: Stage, site: Site) -> None:
    """Nobody else's: all other text goes on its way."""

    async def nothing(number: int) -> None:
        """The model is not what is looked at."""

    async def prints(call_: Any) -> None:
        call_.draft(b"Line one.\n")

    stage.speaks(site, says("", call("fx.read", a=1)), says("Done."), between=nothing)
    site.world.at["fx.read"] = prints
    stage.works()
    failed = StepRow.objects.get(path="1/0", type="action_result").content
    assert "a draft is text, not bytes" in failed["message"]
    assert write(stage.drafts)
    stage.sound()


async def test_writing_goes_on_whatever_goes_wrong(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told in the log; the drafts that were on their way are lost, those to come are not."""
    monkeypatch.setattr("conversations.worker.drafts.AGAIN_SECONDS", 0.0)
    failed, written = asyncio.Event(), asyncio.Event()

    async def fails_once(function: Callable[..., Any], *args: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("as if something unheard of had happened")
        written.set()

    drafts = Drafts(fails_once)
    growing = drafts.of(Claim(1, 1, 1, 0))
    growing.add("1", "One.", 1)
    writing = asyncio.create_task(drafts.keep_writing())
    async with asyncio.timeout(10):
        await failed.wait()
        growing.add("1", "Two.", 1)
        await written.wait()
    writing.cancel()
    assert "unheard of" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_the_drain_writes_them_while_it_works(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for it: ten times a second, in the thread that owns the connection."""
    prompt = site.starts(ann)
    seen: list[str] = []

    async def waits(number: int) -> None:
        if not number:
            return
        async with asyncio.timeout(20):
            while not seen:
                seen.extend(await drain.write(lambda: list(Draft.objects.values_list("text", flat=True))))

    registry, _ = cast_site(Streaming([says("Slow.")], between=waits), site.world.tools())
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    drain = new_drain()
    assert async_to_sync(until_idle)(drain) == 1
    assert seen == ["Slow. "]
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert not Draft.objects.exists()
