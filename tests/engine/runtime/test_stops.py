"""Stopping a turn: cancellation, a draining worker, a lost claim; and steps that others append meanwhile."""

import asyncio

import pytest

from agents.engine.closing import close_turn
from agents.engine.errors import Cancelled, Draining, Fenced, Unrecorded
from agents.engine.interfaces.journal import Record
from agents.engine.interfaces.provider import Answer, Request
from agents.engine.ledger import Ledger, Step
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.run import Run
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import CrashingJournal, SharedJournal, kept_outputs
from tests.engine.support import Site, call, carry_on, decide, decision, end_of, lines, says

BATCH = [
    says("", call("report.write", name="a"), call("shell.run", command="b"), call("touch", name="c")),
    says("Done."),
]


def cancel(ledger: Ledger) -> list[Step]:
    return [Step("user:7", "cancel", {"reason": ""})]


def check_ended_once(ledger: Ledger) -> None:
    """Every call has one result, no call one after the root's, and the turn one end."""
    results = [step.path for step in ledger if step.type == "action_result"]
    assert sorted(results) == sorted(set(results))
    assert not View(ledger).open_calls()
    assert results[-1] == ""


async def test_a_cancel_seen_at_any_record_ends_the_turn_once(world: World) -> None:
    """Everything open is closed, inner first, the root last; what had run is kept; nothing begins after it."""
    whole = SharedJournal()
    registry, _ = site(BATCH, world.tools())
    waiting = await carry_on(registry, journal=whole)
    decided = decide(waiting, "1/1/human")
    for base, records in ((None, len(whole.records)), (decided, 6)):
        for n in range(1, records + 1):
            world = World()
            journal = SharedJournal(base) if base else SharedJournal()
            journal.push(n, cancel)
            await carry_on(site(BATCH, world.tools())[0], journal.ledger, journal=journal)
            end = end_of(journal.ledger)
            assert end, n
            assert (end["state"], end["stop_reason"]) == ("cancelled", "cancelled"), n
            check_ended_once(journal.ledger)
            steps = list(journal.ledger)
            at = next(i for i, step in enumerate(steps) if step.type == "cancel")
            assert "action_start" not in [step.type for step in steps[at:]], n
            started = sum(1 for s in steps[len(base or ()) :] if s.type == "action_start" and s.path != "1")
            assert len(world.done) == started - lines(steps).count("2 action_start"), n
            assert kept_outputs(journal) == sorted(Outputs(steps).in_order(), key=lambda o: o.position), n


async def test_a_cancel_ends_a_running_effect(world: World) -> None:
    """The runner stops the run; the effect is ended, its call closed."""
    begun, ended = asyncio.Event(), list[bool]()

    async def hang(_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    world.at["report.write"] = hang
    registry, _ = site(BATCH, world.tools())
    journal = SharedJournal()
    run = Run(registry, journal, Site())
    running = asyncio.ensure_future(run.run_turn("agent", {"text": "go"}))
    await begun.wait()
    journal.push(len(journal.records) + 1, cancel)
    run.stop(Cancelled())
    await running
    assert ended == [True]
    assert world.done == []
    check_ended_once(journal.ledger)
    assert lines(journal.ledger)[-4:] == [
        "1/2 action_result",
        "1/1 action_result",
        "1/0 action_result",
        ". action_result",
    ]


async def test_a_decision_that_comes_while_the_pause_is_written_is_not_lost(world: World) -> None:
    """The pause is dropped: the turn continues now, or in its next run."""
    journal = SharedJournal()
    script = [says("", call("fx.read", a=1), call("shell.run", command="b")), says("Done.")]

    def decide_it(ledger: Ledger) -> list[Step]:
        return decision(ledger, "1/1/human")

    registry, _ = site(script, world.tools())
    waiting = await carry_on(registry)
    cut = next(i for i, step in enumerate(waiting) if step.type == "pause")
    asked = SharedJournal(waiting[:cut])
    asked.push(1, decide_it)
    ledger = await carry_on(registry, asked.ledger, journal=asked)
    if not end_of(ledger):
        ledger = await carry_on(registry, ledger)
    assert journal.records == []
    assert world.times["shell.run", "b"] == 1
    check_ended_once(ledger)
    assert not View(ledger).paused()


async def test_notes_of_others_move_the_ids_of_what_is_staged(world: World) -> None:
    """A writer that was behind writes after what others appended, with ids that go on."""
    for n in range(1, 9):
        journal = SharedJournal()
        journal.push(n, lambda ledger: [Step("runtime", "note", {"code": "x", "message": ""})] * 2)
        ledger = await carry_on(site([BATCH[0], says("Done.")], World().tools())[0], journal=journal)
        assert [step.id for step in ledger] == list(range(1, len(ledger) + 1)), n
        assert kept_outputs(journal) == sorted(Outputs(ledger).in_order(), key=lambda o: o.position), n


async def test_a_turn_that_others_ended_is_left_alone(world: World) -> None:
    """Somebody closed the turn: nothing is appended after its end, and nothing runs."""
    journal = SharedJournal()
    journal.push(2, lambda ledger: [Step("runtime", "action_result", {"state": "failed", "stop_reason": "x"})])
    ledger = await carry_on(site(BATCH, world.tools())[0], journal=journal)
    assert lines(ledger)[-1] == ". action_result"
    assert world.done == []


@pytest.mark.parametrize("pushed", [0, 1, 3])
async def test_a_round_refers_to_the_same_history_whatever_others_append_before_it(world: World, pushed: int) -> None:
    """What was read is recorded with the round's start, so all of that gets other numbers, and the start names one."""
    journal = SharedJournal()
    if pushed:
        journal.push(3, lambda ledger: [Step("user:7", "note", {"code": "x", "message": "y"})] * pushed)
    await carry_on(site([says("", call("fx.read", a=1)), says("Done.")], world.tools())[0], journal=journal)
    last, start = (step for step in journal.ledger if step.path == "2" and step.type in ("action_call", "action_start"))
    assert start.payload["history"]["seq"] == last.id
    assert lines(journal.ledger)[last.id - 2] == "1/0 action_result"


async def test_a_draining_worker_finishes_what_runs_and_loses_nothing(world: World) -> None:
    """The answer that came is recorded; nothing new starts; the next worker asks the model nothing again."""
    registry, provider = site(BATCH, world.tools())
    journal = CrashingJournal()
    run = Run(registry, journal, Site())
    script = provider.script

    def drain(request: Request) -> Answer:
        run.draining = True
        return BATCH[0]

    provider.script = drain
    with pytest.raises(Draining):
        await run.run_turn("agent", {"text": "go"})
    assert world.done == []
    assert lines(journal.ledger)[-1] == "1 action_result"
    provider.script = script
    await carry_on(registry, journal.ledger)
    assert len(provider.asked) == 1
    assert world.done == [("report.write", "a")]


async def test_an_effect_that_runs_while_draining_is_recorded(world: World) -> None:
    """Its result is recorded before the worker leaves, and the call after it has not begun."""
    registry, _ = site([says("", call("report.write", name="a"), call("touch", name="b"))], world.tools())
    journal = CrashingJournal()
    run = Run(registry, journal, Site())
    world.at["report.write"] = lambda call: setattr(run, "draining", True)
    with pytest.raises(Draining):
        await run.run_turn("agent", {"text": "go"})
    assert world.done == [("report.write", "a")]
    assert lines(journal.ledger)[-1] == "1/0 action_result"


async def test_a_worker_that_lost_its_claim_writes_nothing_more(world: World) -> None:
    """Fenced: another worker owns the turn."""

    class Lost(CrashingJournal):
        async def record(self, record: Record) -> None:
            if len(self.records) == 1:
                raise Fenced
            await super().record(record)

    journal = Lost()
    with pytest.raises(Fenced):
        await carry_on(site(BATCH, world.tools())[0], journal=journal)
    assert world.done == []
    assert len(journal.records) == 1


async def test_failing_a_turn_closes_everything(world: World) -> None:
    """What a policy raised that is no data ends the turn as failed, with a text that says so (R2, R16)."""
    registry, _ = site(BATCH, world.tools())
    waiting = await carry_on(registry)
    journal = CrashingJournal(waiting)
    run = Run(registry, journal, Site(), steps=waiting)
    await run.fail("internal_error", "Something broke.")
    check_ended_once(journal.ledger)
    assert lines(journal.records[0].steps)[-2:] == [". text", ". action_result"]
    end = end_of(journal.ledger)
    assert end
    assert (end["state"], end["stop_reason"]) == ("failed", "internal_error")
    gate = View(journal.ledger).result("1/1/human")
    assert gate
    assert gate.payload["decision"] == "cancelled"


async def test_an_end_that_could_not_be_recorded_is_not_doubled(world: World) -> None:
    """The last record failed; the runner fails the turn: it has one end all the same."""

    class Stumbles(CrashingJournal):
        failures = 1

        async def record(self, record: Record) -> None:
            if record.steps[-1].path == "" and record.steps[-1].type == "action_result" and self.failures:
                self.failures -= 1
                raise OSError("disk")
            await super().record(record)

    journal = Stumbles()
    run = Run(site([says("Done.")], world.tools())[0], journal, Site())
    with pytest.raises(Unrecorded, match="disk"):
        await run.run_turn("agent", {"text": "go"})
    await run.fail("internal_error", "Something broke.")
    check_ended_once(journal.ledger)


def test_a_call_that_had_begun_is_not_told_as_never_done() -> None:
    """The model of the next turn reads that it may have happened; of one that waited, only that it was stopped."""
    view = View(
        [
            Step("user:1", "action_call", {"policy": "agent", "payload": {}}, "", 1),
            Step("model", "action_call", {"policy": "mail.send", "payload": {}}, "1/0", 2),
            Step("model", "action_call", {"policy": "mail.send", "payload": {}}, "1/1", 3),
            Step("worker:1", "action_start", {"attempt": 1}, "1/0", 4),
        ]
    )
    told = {step.path: step.payload for step in close_turn(view, "cancelled", "cancelled", "Stopped.")}
    assert told["1/0"]["code"] == told["1/1"]["code"] == "cancelled"
    assert "may have happened" in told["1/0"]["message"]
    assert told["1/1"]["message"] == "Stopped."
