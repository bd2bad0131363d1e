"""Python's traps: ways to run code twice, or only half of it, while a call waits for a person."""

import asyncio

from agents.engine import Action, Context, Step, ToolError
from agents.engine.ledger import text
from tests.engine.runtime.test_replay import Program, outputs, work
from tests.engine.support import decide, lines, open_gates

ASK = Action("human", {"ask": "question", "question": "Which?"})


async def test_a_finally_around_a_waiting_call_does_nothing() -> None:
    """A context that has suspended starts nothing more; after the decision the `finally` does its work, once."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        try:
            await ctx.call(ASK)
        finally:
            await ctx.call(work("clean up"))
        return []

    program = Program(body)
    ledger = await program.run()
    assert program.did == []
    assert lines(ledger) == [". action_call", "1 action_call", ". pause"]
    await program.run(decide(ledger, "1", "answer"))
    assert program.did == ["clean up"]


async def test_swallowing_the_suspension_changes_nothing() -> None:
    """A policy that catches everything can neither go on nor end."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        for name in ("one", "two"):
            try:
                await ctx.call(ASK)
                await ctx.call(work(name))
            except BaseException:  # noqa: BLE001 - that is the trap
                pass
        return [text("policy:root", "done")]

    program = Program(body)
    ledger = await program.run()
    assert program.did == []
    assert lines(ledger) == [". action_call", "1 action_call", ". pause"]


async def test_another_error_in_place_of_the_suspension_changes_nothing() -> None:
    """An error raised while the suspension unwinds does not become the result, not even a ToolError."""
    for error in (ToolError("no"), ValueError("no")):

        async def body(action: Action, ctx: Context, error: Exception = error) -> list[Step]:
            try:
                return await ctx.call(ASK)
            finally:
                raise error

        ledger = await Program(body).run()
        assert lines(ledger) == [". action_call", "1 action_call", ". pause"]


async def test_a_task_group_around_a_waiting_call_loses_no_effect() -> None:
    """The group cancels its siblings; the effect that had begun is ended and recorded, not torn in two."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(ctx.call(work("slow")))
            asked = group.create_task(ctx.call(ASK))
        return [text("policy:root", outputs(slow.result()) + str(asked.result()[-1].payload["answer"]))]

    program = Program(body)
    program.gates["slow"] = asyncio.Event()
    running = asyncio.ensure_future(program.run())
    asked = asyncio.Event()
    asyncio.get_running_loop().call_soon(asked.set)
    await asked.wait()
    for _ in range(50):  # the group has been torn down long since
        await asyncio.sleep(0)
    assert not running.done()
    program.gates["slow"].set()
    ledger = await running
    assert program.did == ["slow"]
    assert lines(ledger) == [
        ". action_call",
        "1 action_call",
        "2 action_call",
        "1 text",
        "1 action_result",
        ". pause",
    ]
    final = await program.run(decide(ledger, "2", "answer", answer="!"))
    assert program.did == ["slow"]
    assert final[-2].payload == {"text": "slow!"}


async def test_a_task_that_was_torn_down_before_it_began_leaves_no_trace() -> None:
    """A call whose task never ran is not made, and nothing is left unawaited."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        task = asyncio.create_task(ctx.call(work("never")))
        task.cancel()
        await asyncio.wait([task])
        return await ctx.call(work("after"))

    program = Program(body)
    ledger = await program.run()
    assert program.did == ["after"]
    assert "1 action_call" not in lines(ledger)
    assert "2 action_result" in lines(ledger)


async def test_a_waiting_call_deep_inside_stops_all_of_its_callers() -> None:
    """Suspension passes through every policy on the way; none of them gets a result."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("middle"))

    program = Program(body)

    @program.registry.register("middle")
    async def middle(action: Action, ctx: Context) -> list[Step]:
        steps = await ctx.call(ASK)
        return [text("policy:middle", str(steps[-1].payload["answer"]))]

    ledger = await program.run()
    assert open_gates(ledger) == ["1/1"]
    final = await program.run(decide(ledger, "1/1", "answer", answer="yes"))
    assert lines(final)[-3:] == ["1 text", "1 action_result", ". action_result"]
