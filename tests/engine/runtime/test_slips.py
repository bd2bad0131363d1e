"""Slips of whoever writes a policy: each is refused with a sentence, or costs nothing that was recorded."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine import (
    Action,
    Context,
    Ledger,
    Limits,
    MemoryJournal,
    PolicyRegistry,
    Step,
    ToolError,
    action_call,
    action_result,
    answer,
    approve,
    as_policy,
    invoke_action,
    loop_wrapper,
    run,
    text,
)
from agents.engine.agent.model import model
from agents.engine.closing import turn_end, turn_usage
from agents.engine.errors import RegistryError
from agents.engine.outputs.events import EventFold
from agents.engine.runtime.decorators import calls_in
from agents.engine.runtime.policy import Policy
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import CrashPoint
from tests.engine.support import ScriptedProvider, answers_in, call, decide, end_of, garbled, play, says


def returns(*steps: Any) -> Policy:
    async def policy(action: Action, ctx: Context) -> list[Step]:
        return list(steps)

    return policy


async def echo(action: Action, ctx: Context) -> list[Step]:
    return [action_result("echo", action.payload)]


# What a policy returns


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Step("p", "note", {"text": "remember"}), "only the engine writes"),
        (Step("p", "pause"), "only the engine writes"),
        (Step("p", "action_start", {"attempt": 1}), "only the engine writes"),
        (Step("p", "state", {"text": "x"}), "what a plugin keeps"),
        (Step("p", "action_call", {"policy": "echo"}), "without a `policy`"),
        (Step("p", "action_call", {"policy": None, "payload": {}}), "without a `policy`"),
        (Step("p", "action_call", {"policy": "echo", "payload": "x"}), "without a `policy`"),
        (Step("p", "action_result", {"returns": 12.5}), "the engine's own: put it into `output`"),
    ],
)
async def test_a_step_that_the_engine_could_not_read_is_refused_before_it_is_recorded(step: Step, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        await run("p", {}, {"p": returns(step)})
    ledger: Ledger = refused.value.ledger  # type: ignore[attr-defined]
    assert [each.type for each in ledger] == ["action_call"]


@pytest.mark.parametrize("said", [{}, "text", {"a": 1}])
async def test_what_is_no_list_of_steps_is_named(said: Any) -> None:
    async def policy(action: Action, ctx: Context) -> Any:
        return said

    with pytest.raises(TypeError, match=f"returned a {type(said).__name__}; it must return a list"):
        await run("p", {}, {"p": policy})


async def test_a_policy_that_is_no_async_function_is_named() -> None:
    with pytest.raises(TypeError, match="the policy 'p' must be an async function"):
        await run("p", {}, {"p": lambda action, ctx: []})  # type: ignore[dict-item, return-value]


@pytest.mark.parametrize(
    "said",
    [{"state": "completed"}, {"state": "completed", "stop_reason": None}, {"state": "WA", "usage": {}}],
)
async def test_a_result_that_looks_like_the_end_of_an_agent_ends_the_turn_as_any(said: dict[str, Any]) -> None:
    ledger = await run("p", {}, {"p": returns(Step("runtime", "action_result", said))})
    fold = EventFold(1, 1)
    events = [event for step in ledger for event in fold.add(step)]
    assert (turn_end(ledger[-1]), events[-1].type) == (("completed", "done"), "prompt.completed")


async def test_an_answer_that_leaves_out_what_it_used_is_counted_as_far_as_it_goes() -> None:
    used = {"model": "m", "usage": {"input_tokens": 3, "reasoning_tokens": None}}

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("m"))

    ledger = await run("p", {}, {"p": asks, "m": returns(Step("model", "action_result", used))})
    assert turn_usage(ledger)["input_tokens"] == 3


async def test_an_error_counts_as_one_whatever_its_code_is() -> None:
    async def fails(action: Action, ctx: Context) -> list[Step]:
        raise ToolError({"no": "text"}, code=404)  # type: ignore[arg-type]

    ledger = await run("p", {}, {"p": fails})
    assert ledger[-1].failed
    assert ledger[-1].payload["code"] == "404"


# What an answer passes on


def invoking(provider: ScriptedProvider, policy: Policy) -> dict[str, Policy]:
    """A model that asks for `look`, and a policy that runs what it asks for without a decorator."""

    async def once(action: Action, ctx: Context) -> list[Step]:
        question = {"ledger": Ledger((text("user", "q"),))}
        steps = await ctx.call(Action("model", question, frozenset({"look"})))
        for each in calls_in(steps):
            steps = [*steps, *await ctx.invoke(each)]
        return steps

    return {"model": model(provider), "look": policy, "once": once}


async def test_the_result_of_a_call_that_was_asked_for_stays_with_it() -> None:
    """In the last place, too; it is not the result of whoever ran the call."""
    seen: list[Step] = []

    async def root(action: Action, ctx: Context) -> list[Step]:
        seen.extend(await ctx.call(Action("once")))
        return seen

    parts = invoking(ScriptedProvider([says("look", call("look"))]), returns(action_result("look", "seen")))
    await run("root", {}, parts | {"root": root})
    assert {step.path for step in seen if step.type == "action_call"} <= {
        step.path for step in seen if step.value == "seen"
    }


async def test_an_error_that_the_model_is_to_read_does_not_fail_the_turn() -> None:
    async def fails(action: Action, ctx: Context) -> list[Step]:
        raise ToolError("not found", "missing")

    ledger = await run("once", {}, invoking(ScriptedProvider([says("look", call("look"))]), fails))
    assert not ledger[-1].failed


async def test_results_of_calls_run_without_a_loop_are_all_given() -> None:
    seen: list[Step] = []
    asks = returns(action_call("two", "echo", {"n": 1}), action_call("two", "echo", {"n": 2}))

    async def root(action: Action, ctx: Context) -> list[Step]:
        seen.extend(await ctx.call(Action("two", {}, frozenset({"echo"})), [invoke_action()]))
        return []

    await run("root", {}, {"root": root, "two": asks, "echo": echo})
    assert [step.value for step in seen if step.value in ({"n": 1}, {"n": 2})] == [{"n": 1}, {"n": 2}]


async def test_a_decorated_root_runs_what_it_is_given_to_offer() -> None:
    root = invoke_action()(returns(action_call("root", "echo", {"n": 1})))
    ledger = await run("root", {}, {"root": root, "echo": echo}, actions={"echo"})
    assert [step.value for step in ledger if step.actor == "echo"] == [{"n": 1}]
    alone = await run("root", {}, {"root": root, "echo": echo})
    assert "not_offered" in [step.payload.get("code") for step in alone]


async def test_a_tool_keeps_its_own_field_named_ledger() -> None:
    class Entry(BaseModel):
        ledger: str = "main"

    booked: list[str] = []

    @tool("book", risk=Risk.WRITE, approval=False)
    async def book(call: ToolCall[Entry]) -> str:
        """Book it."""
        booked.append(call.input.ledger)
        return "ok"

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("book", {"ledger": "taxes"}), [invoke_action()])

    await run("root", {}, {"root": root, "book": as_policy(book)})
    assert booked == ["taxes"]


async def test_the_ledger_of_chains_side_by_side_is_the_same_on_replay() -> None:
    """Whichever chain is reached first, the calls stand in the order in which they were made."""
    second = asyncio.Event()
    orders: list[list[str]] = []

    async def say(action: Action, ctx: Context) -> list[Step]:
        if action.payload["n"] == "a1":
            await second.wait()
        if action.payload["n"] == "b2":
            second.set()
        return [text("say", action.payload["n"])]

    async def root(action: Action, ctx: Context) -> list[Step]:
        async def chain(name: str) -> None:
            for number in "12":
                await ctx.call(Action("say", {"n": name + number}), key=name + number)

        await ctx.gather(chain("a"), chain("b"))
        made = [step for step in ctx.get_ledger() if step.type == "action_call"]
        orders.append([step.payload["payload"]["n"] for step in made])
        if len(orders) == 1:
            raise KeyError("dies")
        return []

    with pytest.raises(KeyError) as died:
        await run("root", {}, {"say": say, "root": root})
    await run("root", {}, {"say": say, "root": root}, died.value.ledger)  # type: ignore[attr-defined]
    assert orders[0] == orders[1]


# Budgets


async def test_a_budget_is_the_same_after_a_pause() -> None:
    """Of unreadable answers as well: an agent that may give six in a row still may after an approval."""

    def script(request: Any) -> Any:
        number = answers_in(request)
        return says("", call("pay", amount=500)) if number == 0 else garbled("{") if number < 5 else says("done")

    registry, _ = site(script, World().tools(), parse_failures=6)
    ledger = await play(registry, decide, None, start=True)
    assert (end_of(ledger) or {})["stop_reason"] == "text"


async def test_no_time_is_no_time_after_a_crash() -> None:
    class Nothing(BaseModel):
        pass

    @tool("look", risk=Risk.READ)
    async def look(call: ToolCall[Nothing]) -> str:
        """Look."""
        return "seen"

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("look"))

    codes = []
    for crash in (None, CrashPoint(1, after=True)):
        registry = PolicyRegistry({"look": as_policy(look)})
        registry.register("root", seconds=0)(root)
        ledger = await play(registry, lambda ledger, path: ledger, crash, start=True, policy="root", payload={})
        codes.append((end_of(ledger) or {}).get("code"))
    assert codes == ["timeout", "timeout"]


# Calling, deciding, registering


@pytest.mark.parametrize(
    ("slip", "error", "why"),
    [
        (lambda ctx: ctx.call("echo"), TypeError, "takes an Action"),
        (lambda ctx: ctx.call(Action("echo"), loop_wrapper(2)), TypeError, "are a list"),
        (lambda ctx: ctx.call(Action("echo"), [loop_wrapper]), ValueError, "whole number from 1 on"),
        (lambda ctx: ctx.call(Action("echo"), key=5), TypeError, "is a text, not a int"),
        (lambda ctx: ctx.call(Action("echo"), key="\x00"), ValueError, "cannot be the key"),
        (lambda ctx: ctx.call(Action("echo", {}, "echo")), TypeError, "not a text"),  # type: ignore[arg-type]
        (lambda ctx: loop_wrapper(0), ValueError, "whole number from 1 on"),
    ],
)
async def test_a_slip_in_a_call_says_what_to_write(slip: Callable[[Context], Any], error: Any, why: str) -> None:
    async def policy(action: Action, ctx: Context) -> list[Step]:
        return list(await slip(ctx))

    with pytest.raises(error, match=why):
        await run("p", {}, {"p": policy, "echo": echo})


@pytest.mark.parametrize("by", [None, 5, "", "ann", "runtime", "user:"])
async def test_only_a_person_decides(by: Any) -> None:
    async def asks(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("human", {"question": "Which?"}), key="q")

    waiting = await run("p", {}, {"p": asks})
    with pytest.raises(ValueError, match="such as 'user:7'"):
        answer(waiting, "q", by=by, answer="yes")
    with pytest.raises(TypeError, match="taken in a Ledger"):
        answer(list(waiting), "q", by="user:7", answer="yes")  # type: ignore[arg-type]


async def test_a_question_without_input_has_none_to_edit() -> None:
    async def asks(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("human", {"ask": "approve", "reason": "May I?"}), key="q")

    waiting = await run("p", {}, {"p": asks})
    with pytest.raises(ValueError, match="no input that could be edited"):
        approve(waiting, "q", by="user:7", input={"a": 1})


async def test_a_question_that_names_a_tool_is_no_gate_of_it() -> None:
    """It is answered at its own path, and has no input."""

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("human", {"ask": "approve", "tool": "pay", "input": {}}), key="q")

    waiting = await run("p", {}, {"p": asks})
    with pytest.raises(ValueError, match="no input that could be edited"):
        approve(waiting, "q", by="user:7", input={"a": 1})
    assert await run("p", {}, {"p": asks}, approve(waiting, "q", by="user:7"))


async def test_people_are_asked_only_what_they_can_answer() -> None:
    """It would have waited for ever."""

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("human", {"ask": "bogus"}))

    ledger = await run("p", {}, {"p": asks})
    assert ledger[-1].payload["message"] == "A policy asks people to 'approve' or a 'question', not 'bogus'."


@pytest.mark.parametrize("seconds", ["x", -1, True, None])
def test_a_limit_is_a_number(seconds: Any) -> None:
    with pytest.raises(RegistryError, match="'p': its seconds must be a number from 0 on"):
        PolicyRegistry().register("p", seconds=seconds)


async def test_the_seconds_of_a_program_count_without_a_site() -> None:
    """A tool that would run for longer is ended (S54)."""

    class Nothing(BaseModel):
        pass

    @tool("wait", risk=Risk.READ)
    async def wait(call: ToolCall[Nothing]) -> None:
        await asyncio.Event().wait()

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("wait"))

    registry = PolicyRegistry({"wait": as_policy(wait)})
    registry.register("root", seconds=0.05)(root)
    assert (await run("root", {}, registry))[-1].payload["code"] == "timeout"


async def test_an_edit_that_the_tool_does_not_take_says_so(world: World) -> None:
    registry, _ = site([says("I pay.", call("pay", amount=500)), says("Done.")], world.tools())
    waiting = await run("agent", {"text": "Pay."}, registry)
    ledger = await run("agent", {"text": "Pay."}, registry, approve(waiting, "1/0", by="user:7", input={"y": 7}))
    result = View(ledger).result("1/0")
    assert result
    assert result.payload["message"].startswith(
        "The tool does not accept the input as a person changed it, so nothing ran."
    )


async def test_a_conversation_from_elsewhere_is_no_ledger_of_a_run() -> None:
    history = Ledger((text("user", "hi"), action_call("assistant", "weather"), action_result("weather", "rain")))
    with pytest.raises(ValueError, match=r"goes into payload\['ledger'\]"):
        await run("p", {}, {"p": echo}, history)


@pytest.mark.parametrize(
    ("policies", "why"),
    [({"human": echo}, "by which people decide"), ({1: echo}, "must be a text"), ({"": echo}, "must be a text")],
)
def test_names_that_no_policy_can_have_are_refused(policies: Any, why: str) -> None:
    with pytest.raises(RegistryError, match=why):
        PolicyRegistry(policies)


async def test_what_is_no_registry_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a PolicyRegistry or a dict"):
        await run("p", {}, None)  # type: ignore[arg-type]


def test_a_payload_is_an_object_so_its_schema_says_so() -> None:
    with pytest.raises(RegistryError, match="of the type 'object'"):
        PolicyRegistry().register("p", input={"type": "array"})(echo)


async def test_a_schema_that_cannot_be_followed_refuses_the_call() -> None:
    registry = PolicyRegistry()
    registry.register("p", input={"$ref": "#"})(echo)
    ledger = await run("p", {}, registry)
    assert ledger[-1].payload["code"] == "invalid_input"


async def test_a_registered_schema_stays_and_says_briefly_what_is_wrong() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    registry = PolicyRegistry()
    registry.register("p", input=schema)(echo)
    schema.clear()
    ledger = await run("p", {"n": "x" * 100_000}, registry)
    assert ledger[-1].payload["code"] == "invalid_input"
    assert len(ledger[-1].payload["message"]) < 1_000


# Ends


async def test_an_error_that_takes_no_attributes_stays_the_error() -> None:
    class Frozen(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    async def fails(action: Action, ctx: Context) -> list[Step]:
        raise Frozen("the real one")

    journal = MemoryJournal()
    with pytest.raises(Frozen, match="the real one"):
        await run("p", {}, {"p": fails}, journal=journal)
    assert len(journal.ledger) == 1


@pytest.mark.parametrize("deep", [False, True])
async def test_a_run_that_is_cancelled_ends(deep: bool) -> None:
    """With all calls that it runs; what was recorded is kept, and the next run goes on with it."""
    began = asyncio.Event()

    async def waits(action: Action, ctx: Context) -> list[Step]:
        began.set()
        await asyncio.Event().wait()
        return []

    async def calls(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("waits"))

    journal = MemoryJournal()
    running = asyncio.ensure_future(
        run("root", {}, {"root": calls if deep else waits, "waits": waits}, journal=journal, limits=Limits())
    )
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert [step.type for step in journal.ledger] == ["action_call"] * (1 + deep)
