"""Replay: recorded results are returned, and work continues at the first call without one."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, run
from agents.engine.errors import ReplayMismatch
from agents.engine.ledger import EMPTY, text
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import decide, end_of, lines, open_gates
from tests.judge import differences

Body = Callable[[Action, Context], Awaitable[list[Step]]]


class Program:
    """The policy `root` does `body`; the policy `work` notes what it did, after `gates[n]` if there is one."""

    def __init__(self, body: Body) -> None:
        self.registry, self.did, self.gates = PolicyRegistry(), list[str](), dict[str, asyncio.Event]()
        self.registry.register("root")(body)

        @self.registry.register("work")
        async def work(action: Action, ctx: Context) -> list[Step]:
            name = action.payload["n"]
            if name in self.gates:
                await self.gates[name].wait()
            self.did.append(name)
            return [text("policy:work", f"did {name}"), Step("x", "action_result", {"output": name})]

    async def run(self, ledger: Ledger = EMPTY, crash: CrashPoint | None = None) -> Ledger:
        journal = CrashingJournal(ledger, crash)
        try:
            await run("root", {}, self.registry, ledger, journal=journal)
        except Crash:
            assert crash
        return journal.ledger


def work(name: str) -> Action:
    return Action("work", {"n": name})


def outputs(steps: list[Step]) -> str:
    return str(steps[-1].payload["output"])


@pytest.mark.parametrize("after", [False, True])
async def test_a_crashed_run_ends_as_an_undisturbed_one(after: bool) -> None:
    """Crash before and after every record: same ledger, no completed call twice (S118..S120)."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        said = [outputs(await ctx.call(work(name))) for name in "abc"]
        return [text("policy:root", "".join(said))]

    undisturbed = await Program(body).run()
    for n in range(1, 8):
        program = Program(body)
        ledger = await program.run(crash=CrashPoint(n, after))
        recorded = [step.payload["output"] for step in ledger if step.type == "action_result" and step.path]
        assert differences(await program.run(ledger), undisturbed) == [], n
        assert [name for name in "abc" if program.did.count(name) != 1 and name in recorded] == [], n


async def test_the_same_call_twice_is_two_calls() -> None:
    """Equal payloads do not make one call of two: calls are matched by path (S127)."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        return [*await ctx.call(work("a")), *await ctx.call(work("a"))]

    program = Program(body)
    ledger = await program.run()
    await program.run(ledger[:-1])
    assert program.did == ["a", "a"]
    assert lines(ledger).count("2 action_result") == 1


async def test_calls_side_by_side_replay_with_their_own_results() -> None:
    """Whatever ends first: each call keeps its path, and its result on replay."""
    answers: list[list[str]] = []

    async def body(action: Action, ctx: Context) -> list[Step]:
        answers.append([outputs(steps) for steps in await ctx.gather(*(ctx.call(work(n)) for n in "abc"))])
        return []

    program = Program(body)
    program.gates = {name: asyncio.Event() for name in "abc"}
    running = asyncio.ensure_future(program.run())
    for name in "cab":
        program.gates[name].set()
        while name not in program.did:  # noqa: ASYNC110 - what it waits for is the engine's own
            await asyncio.sleep(0)
    ledger = await running
    assert [step.payload["output"] for step in ledger if step.path and step.type == "action_result"] == ["c", "a", "b"]
    await program.run(ledger[:-1])
    assert answers == [["a", "b", "c"]] * 2
    assert program.did == ["c", "a", "b"]


async def test_of_calls_side_by_side_only_the_unfinished_run_again() -> None:
    """A crash after one of three results: the other two run again, with their own paths."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        said = await ctx.gather(*(ctx.call(work(n)) for n in "abc"))
        return [text("policy:root", "".join(map(outputs, said)))]

    whole = await Program(body).run()
    for cut in range(1, len(whole)):
        program = Program(body)
        finished = [s.payload["output"] for s in whole[:cut] if s.path and s.type == "action_result"]
        final = await program.run(whole[:cut])
        assert final[-2].payload == {"text": "abc"}, cut
        assert sorted(program.did) == [n for n in "abc" if n not in finished], cut


async def test_a_gather_with_one_that_waits_lets_the_others_end() -> None:
    """The waiting call suspends the run; the others' results are recorded and not done again."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        said = await ctx.gather(
            ctx.call(work("a")), ctx.call(Action("human", {"question": "Which?"})), ctx.call(work("b"))
        )
        return [text("policy:root", str(said[1][-1].payload["answer"]))]

    program = Program(body)
    ledger = await program.run()
    assert program.did == ["a", "b"]
    assert open_gates(ledger) == ["2"]
    assert lines(ledger)[-1] == ". pause"
    final = await program.run(decide(ledger, "2", "answer", answer="yes"))
    assert program.did == ["a", "b"]
    assert final[-2].payload == {"text": "yes"}


async def test_an_unkeyed_call_from_another_task_is_refused() -> None:
    """Its ordinal would depend on the scheduler; with a key it is allowed."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        async def helper(key: str | None) -> list[Step]:
            return await ctx.call(work("a"), key=key)

        await asyncio.create_task(helper("mine"))
        with pytest.raises(RuntimeError, match="need keys"):
            await asyncio.create_task(helper(None))
        return []

    ledger = await Program(body).run()
    assert "mine action_result" in lines(ledger)


async def test_another_policy_at_a_recorded_path_is_a_mismatch() -> None:
    """The program changed under its ledger: the run fails loudly, and nothing is written (S127)."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(work("a"))

    async def changed(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("other"))

    ledger = await Program(body).run()
    program = Program(changed)
    with pytest.raises(ReplayMismatch, match="at '1' the ledger has 'work', the program calls 'other'"):
        await program.run(ledger[:-1])


@pytest.mark.parametrize(("cut", "noted"), [(2, True), (4, False)])
async def test_another_payload_is_noted_once_and_not_fatal(cut: int, noted: bool) -> None:
    """The call goes on with the new payload; where its result stands, that result is returned (S127)."""

    def calls(name: str) -> Body:
        async def body(action: Action, ctx: Context) -> list[Step]:
            return [text("policy:root", outputs(await ctx.call(work(name))))]

        return body

    ledger = (await Program(calls("old")).run())[:cut]
    assert lines(ledger)[-1] == ("1 action_call" if noted else "1 action_result")
    crashed = await Program(calls("new")).run(ledger, CrashPoint(2))
    final = await Program(calls("new")).run(crashed)
    notes = [step.payload["code"] for step in final if step.type == "note"]
    assert notes == (["payload_changed"] if noted else [])
    assert final[-2].payload == {"text": "new" if noted else "old"}


async def test_a_question_of_a_workflow_waits_any_length_of_time() -> None:
    """A human is a policy: its result is what the person decided (S129)."""

    async def body(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(work("before"))
        steps = await ctx.call(Action("human", {"ask": "question", "question": "Which?"}))
        return [text("policy:root", steps[-1].payload["answer"])]

    program = Program(body)
    ledger = await program.run()
    assert await program.run(ledger) == ledger
    final = await program.run(decide(ledger, "2", "answer", answer="this"))
    assert program.did == ["before"]
    assert final[-2].payload == {"text": "this"}
    assert end_of(final) == {"output": None}
