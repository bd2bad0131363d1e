"""Interrupted calls, which began and have no recorded end: nothing runs twice by itself."""

import asyncio
import threading

import pytest

from agents.engine.errors import Cancelled, ToolError
from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import Ledger, Step
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime import run as runtime
from agents.engine.runtime.run import Run
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Name, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, SharedJournal
from tests.engine.support import Site, call, carry_on, decide, end_of, lines, open_gates, results_in, says

REPORT = [says("", call("report.write", name="q"), call("fx.read", a=1)), says("Done.")]
TOUCH = [says("", call("touch", name="x")), says("Done.")]


async def crashed(world: World, script: list[Answer], n: int) -> Ledger:
    """The ledger of a turn that died before its n-th record."""
    journal = CrashingJournal(crash=CrashPoint(n))
    with pytest.raises(Crash):
        await carry_on(site(script, world.tools())[0], journal=journal)
    return journal.ledger


async def test_an_interrupted_call_asks_its_owner(world: World) -> None:
    """A start without a result, not idempotent: a card, and nothing after it runs (R15)."""
    ledger = await crashed(world, REPORT, 3)
    assert lines(ledger)[-1] == "1/0 action_start"
    assert world.done == [("report.write", "q")]
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, ledger)
    assert open_gates(waiting) == ["1/0/card1"]
    card = View(waiting).call("1/0/card1")
    assert card
    assert {k: card.payload["payload"][k] for k in ("ask", "tool", "input")} == {
        "ask": "interrupted",
        "tool": "report.write",
        "input": {"name": "q"},
    }
    assert reason_of(waiting) == WORKER_LOST
    assert world.done == [("report.write", "q")]


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        ("it_ran", "It was interrupted before its output was recorded. The owner says it ran."),
        ("it_did_not", "It was interrupted. The owner says it did not run."),
        ("expired", "Nobody knows whether it ran: check before you ask for it again."),
    ],
)
async def test_the_answer_to_the_card_is_what_the_model_reads(world: World, decided: str, message: str) -> None:
    """The honest error, and the turn goes on."""
    registry, provider = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    await carry_on(registry, decide(waiting, "1/0/card1", decided))
    assert world.times["report.write", "q"] == 1
    code = "interrupted" if decided == "expired" else decided
    assert results_in(provider.asked[-1]) == [f"Error ({code}): {message}", "read 1"]


async def test_run_again_is_an_approval_of_its_own(world: World) -> None:
    """It runs as attempt 2; interrupted again, it asks again."""
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    again = decide(waiting, "1/0/card1", "run_again")
    final = await carry_on(registry, again)
    assert world.times["report.write", "q"] == 2
    assert [s.payload["attempt"] for s in final if s.path == "1/0" and s.type == "action_start"] == [1, 2]
    journal = CrashingJournal(again, CrashPoint(2))
    with pytest.raises(Crash):
        await carry_on(registry, again, journal=journal)
    assert open_gates(await carry_on(registry, journal.ledger)) == ["1/0/card2"]


async def test_run_again_of_another_digest_runs_nothing(world: World) -> None:
    """A fresh approval binds its exact call as the first one does."""
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    await carry_on(registry, decide(waiting, "1/0/card1", "run_again", digest="0" * 64))
    assert world.times["report.write", "q"] == 1


async def test_where_nobody_is_there_the_model_is_told(world: World) -> None:
    """Unattended turns get the honest error at once."""
    registry, provider = site(REPORT, world.tools())
    await carry_on(registry, await crashed(world, REPORT, 3), services=Site(unattended=True))
    assert world.times["report.write", "q"] == 1
    assert results_in(provider.asked[-1])[0].startswith("Error (interrupted): Nobody knows whether it ran")


async def test_an_idempotent_tool_runs_again_with_the_same_key(world: World) -> None:
    """And its service sees the same idempotency key for every attempt (R15)."""
    keys: list[tuple[str, int]] = []
    world.at["touch"] = lambda call: keys.append((call.key, call.attempt))
    ledger = await crashed(world, TOUCH, 3)
    await carry_on(site(TOUCH, world.tools())[0], ledger)
    assert world.times["touch", "x"] == 2
    assert [attempt for _, attempt in keys] == [1, 2]
    assert keys[0][0] == keys[1][0] != ""


WORKER_LOST = "This was started, and the worker stopped before its result was recorded. Did it run?"
STILL_RUNS = "It did not end within 0.01 seconds, its limit, and may still be running. Did it run?"


def reason_of(ledger: Ledger, card: str = "1/0/card1") -> str:
    """Why the owner is asked there, as the card says it."""
    asked = View(ledger).call(card)
    assert asked
    return str(asked.payload["payload"]["reason"])


async def test_a_thread_past_its_time_limit_is_interrupted() -> None:
    """A thread cannot be killed, so its owner is asked, and told that it may still be running."""
    stuck, ran = threading.Event(), list[str]()

    @tool("slow", risk=Risk.WRITE, approval=False, time_limit=0.01)
    def slow(call: ToolCall[Name]) -> None:
        stuck.wait()
        ran.append(call.input.name)

    try:
        ledger = await carry_on(site([says("", call("slow", name="x")), says("Done.")], [slow])[0])
        assert open_gates(ledger) == ["1/0/card1"]
        assert reason_of(ledger) == STILL_RUNS
    finally:
        stuck.set()


async def test_a_coroutine_past_its_time_limit_is_ended() -> None:
    """The model reads that it was stopped."""
    ended: list[str] = []

    @tool("slow", risk=Risk.WRITE, approval=False)
    async def slow(call: ToolCall[Name]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.input.name)

    registry, provider = site([says("", call("slow", name="x")), says("Done.")], [slow])
    await carry_on(registry, limits=Limits(tool_seconds=0.01))
    assert ended == ["x"]
    assert results_in(provider.asked[1]) == ["Error (timeout): Stopped after 0.01 seconds, its limit."]


class Stubborn:
    """A tool that goes on when it is told to end, until it is `released`; then it tells of itself all it can.

    `refused` is what it hears when it turns to the site.
    """

    def __init__(self, idempotent: bool) -> None:
        self.begun, self.released, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.refused = ""
        self.tool: Tool = tool("slow", risk=Risk.WRITE, approval=False, idempotent=idempotent)(self._run)

    async def _run(self, call: ToolCall[Name]) -> str:
        self.begun.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        call.draft("late")
        call.widget("table", {}, "late")
        call.file("late.txt", b"", media_type="text/plain", summary="late")
        try:
            await call.services.save_file("late.txt", b"", "text/plain", "late")
        except ToolError as error:
            self.refused = error.message
        self.over.set()
        return "late"

    async def ends(self) -> None:
        self.released.set()
        await self.over.wait()


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_coroutine_that_does_not_end_is_left_alone(monkeypatch: pytest.MonkeyPatch, idempotent: bool) -> None:
    """Its owner is asked; if it is idempotent, the model is told instead. Its own result is discarded."""
    monkeypatch.setattr(runtime, "GRACE_SECONDS", 0.01)
    slow, services = Stubborn(idempotent), Site()
    registry, provider = site([says("", call("slow", name="x")), says("Done.")], [slow.tool])
    journal = CrashingJournal()
    await carry_on(registry, journal=journal, services=services, limits=Limits(tool_seconds=0.01))
    before = journal.ledger
    await slow.ends()
    assert journal.ledger == before
    assert open_gates(before) == ([] if idempotent else ["1/0/card1"])
    if idempotent:
        told = "Not waited for any longer than 0.01 seconds, its limit. It may still be running."
        assert results_in(provider.asked[1]) == [f"Error (timeout): {told}"]
    else:
        assert reason_of(before) == STILL_RUNS
    assert slow.refused == "Files cannot be kept here."
    assert (services.files, [text for _, text in services.drafts if text == "late"]) == ([], [])
    assert [output.type for output in Outputs(before).in_order()] == (["tool", "text"] if idempotent else ["tool"])


async def test_why_its_owner_is_asked_outlives_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remark applies to one attempt: if the call runs again and its worker dies, the new card does not have it."""
    monkeypatch.setattr(runtime, "GRACE_SECONDS", 0.01)
    slow, limits = Stubborn(idempotent=False), Limits(tool_seconds=0.01)
    registry, provider = site([says("", call("slow", name="x")), says("Done.")], [slow.tool])
    waiting = await carry_on(registry, limits=limits)
    await slow.ends()
    noted = Ledger(tuple(step for step in waiting if step.path != "1/0/card1" and step.type != "pause"))
    assert lines(noted)[-2:] == ["1/0 action_start", "1/0 note"]
    assert reason_of(await carry_on(registry, noted, limits=limits)) == STILL_RUNS
    await carry_on(registry, noted, services=Site(unattended=True), limits=limits)
    assert results_in(provider.asked[-1])[0].startswith("Error (interrupted): It did not end within 0.01 seconds")
    again = decide(waiting, "1/0/card1", "run_again")
    journal = CrashingJournal(again, CrashPoint(2))
    with pytest.raises(Crash):
        await carry_on(registry, again, journal=journal)
    assert reason_of(await carry_on(registry, journal.ledger), "1/0/card2") == WORKER_LOST


async def test_a_coroutine_that_does_not_end_holds_up_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn ends all the same, and says that the call had begun."""
    monkeypatch.setattr(runtime, "GRACE_SECONDS", 0.01)
    slow, journal = Stubborn(idempotent=False), SharedJournal()
    run = Run(site([says("", call("slow", name="x"))], [slow.tool])[0], journal, Site())
    running = asyncio.ensure_future(run.run_turn("agent", {"text": "go"}))
    await slow.begun.wait()
    journal.push(len(journal.records) + 1, lambda _: [Step("user:7", "cancel", {"reason": ""})])
    run.stop(Cancelled())
    await running
    ended = journal.ledger
    await slow.ends()
    assert journal.ledger == ended
    end, result = end_of(ended), View(ended).result("1/0")
    assert end
    assert end["state"] == "cancelled"
    assert result
    assert "It had begun" in result.payload["message"]


async def test_a_coroutine_that_ends_by_itself_when_told_to_is_taken_at_its_word() -> None:
    """Its result is known: nobody needs to be asked."""

    @tool("slow", risk=Risk.WRITE, approval=False)
    async def slow(call: ToolCall[Name]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    registry, provider = site([says("", call("slow", name="x")), says("Done.")], [slow])
    await carry_on(registry, limits=Limits(tool_seconds=0.01))
    assert results_in(provider.asked[1]) == ["half of it"]
