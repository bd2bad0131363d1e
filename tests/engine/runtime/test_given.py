"""What policies are given is theirs, and what they give back is told once: seeds, turns, answers of others."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import Any

import pytest
from pydantic import BaseModel

from agents import Risk, ToolCall, tool
from agents.engine import (
    Action,
    Context,
    Ledger,
    MemoryJournal,
    Step,
    as_policy,
    invoke_action,
    loop_wrapper,
    run,
    text,
)
from agents.engine.ledger import EMPTY, action_call, action_error, action_result
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.policy import Policy
from agents.engine.view import View
from tests.engine.support import lines


def played(root: Any, ledger: Ledger = EMPTY, **more: Any) -> Ledger:
    payload, actions = more.pop("payload", {}), more.pop("actions", ())
    return asyncio.run(run("root", payload, {"root": root, **more}, ledger, actions=actions))


def words(steps: Any) -> list[str]:
    return [step.payload["text"] for step in steps if step.type == "text"]


SEED = Ledger((text("user", "Hello."), text("assistant", "Hello!")))


class Nothing(BaseModel):
    """The input of a tool that needs none."""


# Copies


def test_what_a_policy_does_to_what_it_is_given_changes_no_record() -> None:
    """Answers, its ledger, and the ledger in its payload are copies: a replay gives it the same again (S104, S110)."""
    read: list[Any] = []

    def spoil(steps: Any) -> None:
        for step in steps:
            read.append(dict(step.payload))
            step.payload.clear()
            step.payload["spoiled"] = True

    async def sub(action: Action, ctx: Context) -> list[Step]:
        spoil(action.ledger)
        return [text("sub", "said"), action_result("sub", {"list": [1]})]

    async def root(action: Action, ctx: Context) -> list[Step]:
        given = Ledger((text("user", "given"),))
        spoil(await ctx.call(Action("sub", {"ledger": given})))
        assert words(given) == ["given"]
        spoil(ctx.get_ledger())
        spoil(ctx.get_ledger())
        raise KeyError("again")

    with pytest.raises(KeyError) as raised:
        played(root, sub=sub)
    recorded: Ledger = raised.value.ledger  # type: ignore[attr-defined]
    live = read.copy()
    assert not any("spoiled" in step.payload for step in recorded)
    read.clear()
    with pytest.raises(KeyError):
        played(root, recorded, sub=sub)
    assert read == live[1:]  # but for what `sub` read, which does not run again


# Seeds


def test_a_policy_passes_on_what_its_run_was_seeded_with() -> None:
    """The root's caller has it anyway; a policy that the root called is given it with the answer."""
    given: list[Step] = []

    async def sub(action: Action, ctx: Context) -> list[Step]:
        return [*action.ledger, text("sub", "And you?")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        given.extend(await ctx.call(Action("sub", {"ledger": ctx.get_ledger()})))
        return [*given[:1], text("root", "Well.")]

    ledger = played(root, SEED, sub=sub)
    assert words(given) == ["Hello.", "Hello!", "And you?"]
    assert words(ledger) == ["Hello.", "Hello!", "And you?", "Well."]
    replayed = list(given)
    given.clear()
    played(root, ledger[:-2], sub=sub)
    assert [step.payload for step in given] == [step.payload for step in replayed]


def test_a_seed_has_no_place_of_an_earlier_run() -> None:
    """Its texts kept the paths of calls of that run, and were taken for those of this one."""
    given: list[Step] = []

    async def sub(action: Action, ctx: Context) -> list[Step]:
        return [text("sub", "now")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        given.extend(await ctx.call(Action("sub")))
        return []

    seed = Ledger((Step("sub", "text", {"text": "then"}, path="1"),))
    ledger = played(root, seed, sub=sub)
    assert words(given) == ["now"]
    assert [(step.path, step.payload["text"]) for step in ledger if step.type == "text"] == [("", "then"), ("1", "now")]


# Turns


async def done(action: Action, ctx: Context) -> list[Step]:
    return [action_result("done", f"did {action.payload['n']}")]


@pytest.mark.parametrize("seed", [EMPTY, SEED])
def test_a_turn_reads_what_the_earlier_ones_said(seed: Ledger) -> None:
    """A decorated policy that decides by `get_ledger` sees its own earlier turns, as root and called (S107, S112)."""
    read: list[list[str]] = []

    @loop_wrapper(4)
    @invoke_action
    async def root(action: Action, ctx: Context) -> list[Step]:
        ledger = await ctx.get_ledger()
        read.append([*words(ledger), *(str(step.value) for step in ledger if step.type == "action_result")])
        results = sum(step.type == "action_result" for step in ledger)
        if results == 2:
            return [text("assistant", "Done.")]
        return [text("assistant", f"Turn {results}."), action_call("assistant", "done", {"n": results})]

    ledger = played(root, seed, done=done, actions={"done"})
    said = words(seed)
    assert read == [
        said,
        [*said, "Turn 0.", "did 0"],
        [*said, "Turn 0.", "Turn 1.", "did 0", "did 1"],
    ]
    assert lines(ledger)[-1] == ". action_result"
    read.clear()
    played(root, ledger[:-3], done=done, actions={"done"})
    assert read[-1] == [*said, "Turn 0.", "Turn 1.", "did 0", "did 1"]


@pytest.mark.parametrize("given", [EMPTY, SEED])
@pytest.mark.parametrize("times", [1, 2])
def test_a_turn_may_give_back_what_it_was_given(given: Ledger, times: int) -> None:
    """`[*action.ledger, *new]` says nothing twice, and a call that has its result is not asked for again (S112)."""
    seen: list[list[str]] = []
    answer: list[Step] = []

    async def turn(action: Action, ctx: Context) -> list[Step]:
        seen.append(words(action.ledger))
        new = [text("assistant", f"Turn {len(seen)}.")]
        if len(seen) < 4:
            new.append(action_call("assistant", "done", {"n": len(seen)}))
        return [*list(action.ledger) * times, *new]

    async def root(action: Action, ctx: Context) -> list[Step]:
        asked = Action("turn", {"ledger": given}, frozenset({"done"}))
        answer.extend(await ctx.call(asked, [loop_wrapper(9), invoke_action()]))
        return []

    played(root, turn=turn, done=done)
    said = words(given)
    turns = [f"Turn {n}." for n in range(1, 5)]
    assert seen == [[*said, *turns[:n]] for n in range(4)]
    assert words(answer) == turns


def test_a_decorated_tool_has_one_entry_for_each_turn() -> None:
    """The call that a decorator goes around is none of the tool itself."""

    @tool("look", risk=Risk.READ)
    def look(call: ToolCall[Nothing]) -> str:
        """Look."""
        return "seen"

    async def root(action: Action, ctx: Context) -> list[Step]:
        return (await ctx.call(Action("look"), [invoke_action()]))[:0]

    ledger = played(root, look=as_policy(look))
    assert [output.path for output in Outputs(ledger).in_order() if output.type == "tool"] == ["1/1"]


# Results of others


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (Step("assistant", "action_result", {"city": "Rome"}), {"city": "Rome"}),
        (action_error("weather", "down", "No.", until="noon"), {"until": "noon"}),
    ],
)
@pytest.mark.parametrize("decorators", [[], [invoke_action()], [loop_wrapper(2), invoke_action()]])
def test_a_result_that_is_passed_on_is_whole(result: Step, kept: dict[str, Any], decorators: list[Any]) -> None:
    """Whoever it is by, and with all that an error says (S115)."""
    given: list[Step] = []

    async def weather(action: Action, ctx: Context) -> list[Step]:
        return [result]

    async def between(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("weather"), decorators)

    async def root(action: Action, ctx: Context) -> list[Step]:
        given.extend(await ctx.call(Action("between")))
        return []

    played(root, weather=weather, between=between)
    assert given[-1].failed is result.failed
    assert given[-1].payload == result.payload | kept


# Slips


def test_what_wraps_a_decorated_policy_is_no_turn_of_it() -> None:
    """functools.wraps copies the marks too: its call was not recorded before it did something of its own."""
    recorded: list[bool] = []

    def around(policy: Policy) -> Policy:
        @wraps(policy)
        async def wrapper(action: Action, ctx: Context) -> list[Step]:
            recorded.append(View(journal.ledger).call("1") is not None)
            return await policy(action, ctx)

        return wrapper

    async def sub(action: Action, ctx: Context) -> list[Step]:
        return []

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("sub"))

    journal = MemoryJournal()
    asyncio.run(run("root", {}, {"root": root, "sub": around(loop_wrapper(2)(sub))}, journal=journal))
    assert recorded == [True]


async def _yields(action: Action, ctx: Context) -> Any:
    yield text("root", "one")


async def _exits(action: Action, ctx: Context) -> Any:
    raise SystemExit(3)


async def _says_nothing(action: Action, ctx: Context) -> Any:
    return [Step("root", "text", {"txt": "Hello."})]


@pytest.mark.parametrize(
    ("policy", "error", "why"),
    [
        (_yields, TypeError, "the policy 'root' yields its steps: it must return a list"),
        (_exits, RuntimeError, r"the policy 'root' called sys\.exit\(3\)"),
        (_says_nothing, ValueError, r"the policy 'root' returned a text without its `text`"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_ledger(policy: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why) as raised:
        played(policy)
    assert lines(raised.value.ledger) == [". action_call"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Ledger([text("user", "Hi."), {"text": "Hi."}]), "a ledger holds steps, not a dict"),  # type: ignore[arg-type]
        (lambda: Action("x", {}, None), "the actions must be a set of names, not None"),  # type: ignore[arg-type]
        (lambda: Action("x", {}, {1}), r"the actions must be a set of names, not \{1\}"),  # type: ignore[arg-type]
        (lambda: Action(None), "an action names a policy by a text, not by None"),  # type: ignore[arg-type]
    ],
)
def test_slips_are_refused_where_they_are_made(make: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make()


def test_a_ledger_of_a_list_is_one_of_a_tuple() -> None:
    steps = [text("user", "Hi.")]
    ledger = Ledger(steps)  # type: ignore[arg-type]
    steps.clear()
    assert ledger == Ledger((text("user", "Hi."),))
