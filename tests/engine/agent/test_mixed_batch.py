"""The mixed batch step by step: read, gated (edited), ungated, gated (rejected), invalid, unknown, read."""

import asyncio
from typing import Any

from agents.engine.interfaces.journal import Record
from tests.engine.cast import World, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import call, carry_on, decide, digest_of, end_of, lines, open_gates, results_in, says

BATCH = says(
    "Five things.",
    call("fx.read", a=1),
    call("shell.run", command="rm a"),
    call("report.write", name="q"),
    call("shell.run", command="rm b"),
    call("shell.run", cmd=1),
    call("no.such"),
    call("fx.read", a=2),
)


async def test_a_mixed_batch_is_recorded_as_the_vocabulary_says(world: World) -> None:
    """Free calls before the first gate run; then all gates are asked, errors given and the rest deferred (R6)."""
    registry, _ = site([BATCH, says("Done.")], world.tools())
    journal = CrashingJournal()
    await carry_on(registry, journal=journal)
    assert [lines(record.steps) for record in journal.records] == [
        [". action_call", "1 action_call", "1 action_start"],
        ["1 text", *(f"1/{n} action_call" for n in range(7)), "1 action_result"],
        [
            "1/0 action_result",  # it only reads, so it needs no record of its own
            "1/1/human action_call",
            "1/3/human action_call",
            "1/4 action_result",
            "1/5 action_result",
            "1/2 action_deferred",
            "1/6 action_deferred",
            ". pause",
        ],
    ]
    assert journal.ledger[-1].payload == {"pending_action_count": 2, "steps_used": 1, "steps_remaining": 9}


async def test_after_the_decisions_the_batch_is_done_in_call_order(world: World) -> None:
    """An edited approval runs the edited input, a rejection nothing; a deferred call runs in its turn (R6, S35)."""
    registry, provider = site([BATCH, says("Done.")], world.tools())
    ledger = await carry_on(registry)
    assert open_gates(ledger) == ["1/1/human", "1/3/human"]
    shell = next(t for t in world.tools() if t.name == "shell.run")
    edited = {"command": "rm -i a"}
    ledger = decide(ledger, "1/1/human", input=edited, digest=digest_of(shell, edited))
    ledger = decide(ledger, "1/3/human", "reject", reason="Keep b.")
    journal = CrashingJournal(ledger)
    final = await carry_on(registry, ledger, journal=journal)
    assert [lines(record.steps) for record in journal.records] == [
        ["1/1 action_start"],
        ["1/1 action_result"],
        ["1/2 action_start"],
        ["1/2 file", "1/2 widget", "1/2 action_result"],
        ["1/3 action_result"],
        ["1/6 action_result", "2 action_call", "2 action_start"],
        ["2 text", "2 action_result", ". action_result"],
    ]
    assert world.done == [("fx.read", 1), ("shell.run", "rm -i a"), ("report.write", "q"), ("fx.read", 2)]
    assert results_in(provider.asked[1]) == [
        "read 1",
        "[A person changed the input of this call.]\n\ndid rm -i a\nexit: 0 (1.2s)",
        "wrote q\n\n[file a.txt] S",
        "Error (rejected): Keep b.",
        "Error (invalid_input): command: Field required",
        "Error (unknown_tool): No tool 'no_such'. Call tools by the names that you were given.",
        "read 2",
    ]
    end = end_of(final)
    assert end
    assert end["state"] == "completed"


async def test_what_was_read_is_recorded_while_another_call_still_reads(world: World) -> None:
    """Else it would wait for the slowest one, and people with it."""
    recorded = asyncio.Event()

    class Telling(CrashingJournal):
        async def record(self, record: Record) -> None:
            await super().record(record)
            if "1/0 action_result" in lines(record.steps):
                recorded.set()

    async def reads(call: Any) -> None:
        if call.input.a == 2:
            await asyncio.wait_for(recorded.wait(), 30)

    world.at["fx.read"] = reads
    registry, _ = site([says("", call("fx.read", a=1), call("fx.read", a=2)), says("Done.")], world.tools())
    journal = Telling()
    await carry_on(registry, journal=journal)
    assert [lines(record.steps) for record in journal.records[2:]] == [
        ["1/0 action_result"],
        ["1/1 action_result", "2 action_call", "2 action_start"],
        ["2 text", "2 action_result", ". action_result"],
    ]
