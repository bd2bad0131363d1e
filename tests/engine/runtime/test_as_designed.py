"""Agents typed as the source design shows them: run, crashed at every record, replayed."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace as Said
from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine import (
    Action,
    Context,
    Ledger,
    PolicyRegistry,
    Step,
    ToolError,
    invoke_action,
    loop_wrapper,
    run,
    text,
)
from agents.engine.ledger import action_call, action_result
from agents.engine.runtime.policy import Policy
from agents.engine.view import View
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, SharedJournal
from tests.engine.support import lines
from tests.judge import differences

QUESTION = Ledger((text("user", "What goes with rhubarb?"),))
BOTH = (loop_wrapper(max_turns=5), invoke_action())


@dataclass
class Kitchen:
    """A cookbook to search in, and a model that searches twice and then answers. It counts what is done."""

    asked: list[list[dict[str, str]]] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)

    async def create(self, messages: list[dict[str, str]], tools: list[Any]) -> Any:
        """Answer as a client of a chat API does: a text, and calls with their arguments as JSON."""
        await asyncio.sleep(0)
        self.asked.append(messages)
        found = sum(message["role"] == "tool" for message in messages)
        names = [tool["function"]["name"] for tool in tools]
        assert names in (["cookbook"], [])
        if found < 2:
            wanted = Said(name="cookbook", arguments=json.dumps({"query": f"rhubarb {found}"}))
            message = Said(content=f"Let me look {found}.", tool_calls=[Said(function=wanted)])
        else:
            message = Said(content="Strawberries.", tool_calls=None)
        return Said(choices=[Said(message=message)])

    async def llm(self, action: Action, ctx: Context) -> list[Step]:
        messages = []
        for step in action.ledger:
            if step.type == "text":
                messages.append({"role": step.actor, "content": step.payload["text"]})
            elif step.type == "action_result":
                messages.append({"role": "tool", "content": str(step.payload)})
        tools = [{"type": "function", "function": {"name": name}} for name in action.actions]
        response = await self.create(messages=messages, tools=tools)
        new_steps = []
        msg = response.choices[0].message
        if msg.content:
            new_steps.append(
                Step(id=str(uuid.uuid4()), actor="assistant", type="text", payload={"text": msg.content})  # type: ignore[arg-type]
            )
        if msg.tool_calls:
            for tc in msg.tool_calls:
                asked = {"policy": tc.function.name, "payload": json.loads(tc.function.arguments)}
                new_steps.append(Step(id=str(uuid.uuid4()), actor="assistant", type="action_call", payload=asked))  # type: ignore[arg-type]
        return new_steps

    async def cookbook(self, action: Action, ctx: Context) -> list[Step]:
        query = action.payload["query"]
        self.searched.append(query)
        return [Step(id="", actor="cookbook", type="action_result", payload={"text": f"pages on {query}"})]  # type: ignore[arg-type]

    async def cook(self, action: Action, ctx: Context) -> list[Step]:
        """Gives the model access to the cookbook."""
        payload = action.payload
        payload["ledger"] = action.ledger
        llm_action = Action(policy="llm", payload=payload, actions=action.actions | {"cookbook"})
        return await ctx.call(action=llm_action, decorators=BOTH)

    def registry(self) -> PolicyRegistry:
        """The agent three times: decorated where it is called, on its definition, and partly in either place."""
        registry = PolicyRegistry()
        for name, policy in (("llm", self.llm), ("cookbook", self.cookbook), ("called", self.cook)):
            registry.register(name)(policy)
        registry.register("chef")(loop_wrapper(max_turns=5)(invoke_action()(self.offering)))
        registry.register("defined")(self.defined)
        registry.register("inner")(invoke_action()(self.offering))
        registry.register("nested")(self.nested)
        return registry

    async def offering(self, action: Action, ctx: Context) -> list[Step]:
        """The model, offered what its caller offers."""
        return await self.llm(action, ctx)

    async def defined(self, action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("chef", action.payload, frozenset({"cookbook"})))

    async def nested(self, action: Action, ctx: Context) -> list[Step]:
        inner = Action("inner", action.payload, frozenset({"cookbook"}))
        return await ctx.call(inner, [loop_wrapper(max_turns=5)])

    async def run(self, name: str, journal: CrashingJournal | None = None) -> Ledger:
        journal = journal or CrashingJournal()
        payload = {"ledger": QUESTION, "style": "brief"}
        return await run(name, payload, self.registry(), journal.ledger, journal=journal)


ALL = ["called", "defined", "nested"]
SAID = ["Let me look 0.", "Let me look 1.", "Strawberries."]


@pytest.mark.parametrize("name", ALL)
async def test_question_search_result_answer(name: str) -> None:
    """The loop stops because no call is left; the model is told of results, and of no turn's own (S112..S114, S128)."""
    kitchen = Kitchen()
    ledger = await kitchen.run(name)
    assert kitchen.searched == ["rhubarb 0", "rhubarb 1"]
    assert [step.payload["text"] for step in ledger if step.type == "text"] == SAID
    assert [[message["role"] for message in asked] for asked in kitchen.asked] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    assert kitchen.asked[1][2]["content"] == "{'text': 'pages on rhubarb 0'}"
    turns = [step.path for step in ledger if step.type == "action_call" and step.payload.get("turn")]
    assert turns == ["1/1", "1/2", "1/3"]
    assert sum(step.type == "action_result" and step.path == "1" for step in ledger) == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", [*ALL, "chef"])
async def test_any_crash_repeats_nothing_that_was_recorded(name: str, after: bool) -> None:
    """From every record on: the same ledger but for ids and times, and no turn and no search again (S119, S120)."""
    top = "" if name == "chef" else "1/"
    undisturbed = CrashingJournal()
    await Kitchen().run(name, undisturbed)
    for n in range(1, len(undisturbed.records) + 1):
        kitchen, journal = Kitchen(), CrashingJournal(crash=CrashPoint(n, after))
        with pytest.raises(Crash):
            await kitchen.run(name, journal)
        recorded = View(journal.ledger)
        turns = [turn for turn in (1, 2, 3) if recorded.result(f"{top}{turn}")]
        searches = [turn for turn in (1, 2) if recorded.result(f"{top}{turn}/0")]
        again = Kitchen()
        assert differences(await again.run(name, CrashingJournal(journal.ledger)), undisturbed.ledger) == []
        assert len(again.asked) == 3 - len(turns)
        assert len(again.searched) == (0 if name == "chef" else 2 - len(searches))  # a run offers its root nothing


@pytest.mark.parametrize("name", [*ALL, "chef"])
async def test_what_others_append_meanwhile_changes_nothing(name: str) -> None:
    """Steps get other numbers then; those that a policy passes on are still known, also of calls that were refused."""
    undisturbed = CrashingJournal()
    await Kitchen().run(name, undisturbed)
    for n in range(1, len(undisturbed.records) + 1):
        journal = SharedJournal()
        journal.push(n, lambda _: [Step("user:7", "note", {"code": "seen", "message": "Meanwhile."})])
        assert differences(await Kitchen().run(name, journal), undisturbed.ledger) == []


async def test_a_decorated_policy_may_be_the_root() -> None:
    """Its turns are calls of their own, its result is the run's (S112, S121)."""
    kitchen = Kitchen()
    ledger = await kitchen.run("chef")
    assert lines(ledger)[:4] == [". action_call", "1 action_call", "1 text", "1/0 action_call"]
    assert lines(ledger)[-1] == ". action_result"
    results = [step for step in ledger if step.type == "action_result" and step.path.count("/") == 1]
    assert [step.payload["code"] for step in results] == ["not_offered"] * 2  # a run offers its root nothing


class Topic(BaseModel):
    """The input of a policy; it has no other fields."""

    topic: str


async def test_the_input_of_a_decorated_policy_is_checked_once() -> None:
    """Its turns have the ledger beside its input, which its model does not know (S111, S112)."""
    registry, seen = PolicyRegistry(), list[Any]()

    @registry.register("tells", input=Topic)
    @loop_wrapper(2)
    async def tells(action: Action, ctx: Context) -> list[Step]:
        seen.append(action.payload)
        return [action_call("tells", "nobody")]

    @registry.register("root")
    async def root(action: Action, ctx: Context) -> list[Step]:
        bad = await ctx.call(Action("tells", {"subject": "rhubarb"}))
        await ctx.call(Action("tells", {"topic": "rhubarb"}))
        return await ctx.call(Action("tells", {"topic": "rhubarb"}), [invoke_action()]) + bad[:-1]

    ledger = await run("root", {}, registry)
    assert [sorted(payload) for payload in seen] == [["ledger", "topic"]] * 4
    failed = View(ledger).result("1")
    assert failed
    assert failed.payload["code"] == "invalid_input"


def _result(payload: dict[str, Any]) -> Callable[[Action, Context], Any]:
    async def policy(action: Action, ctx: Context) -> list[Step]:
        if payload.get("error"):
            raise ToolError(payload["message"], payload["code"])
        return [text("policy", "said"), Step("weather", "action_result", payload)]

    return policy


@pytest.mark.parametrize(
    "payload",
    [{"output": 5}, {"city": "Oslo"}, {"error": True, "code": "not_found", "message": "No."}],
)
@pytest.mark.parametrize("decorators", [[loop_wrapper(3)], [invoke_action()], BOTH])
async def test_the_last_turn_s_result_is_the_decorated_call_s(payload: dict[str, Any], decorators: list[Any]) -> None:
    """One result is written, at the end, with the value or the error of the last turn (S112, S123)."""
    registry, got = PolicyRegistry(), list[Step]()
    registry.register("weather")(_result(payload))

    @registry.register("root")
    async def root(action: Action, ctx: Context) -> list[Step]:
        got.extend(await ctx.call(Action("weather"), decorators))
        return []

    await run("root", {}, registry)
    assert [step.path for step in got if step.type == "action_result"] == ["1"]
    assert {key: value for key, value in got[-1].payload.items() if key != "returns"} == payload


# A policy's own ledger


async def test_a_policy_that_reads_its_ledger_first_is_replayed_to_the_same_calls() -> None:
    """It decides by what it has been given so far, live and on replay, with and without `await` (S107, S110, S126)."""
    registry, read = PolicyRegistry(), list[list[str]]()

    @registry.register("step")
    async def step(action: Action, ctx: Context) -> list[Step]:
        return [text("step", "inside"), action_result("step", action.payload["n"])]

    @registry.register("root")
    async def root(action: Action, ctx: Context) -> list[Step]:
        read.append([])
        for _ in range(3):
            ledger = await ctx.get_ledger()
            assert ledger == ctx.get_ledger()
            read[-1].append(" ".join(lines(ledger)))
            await ctx.call(Action("step", {"n": len(ledger)}))
        return []

    undisturbed = CrashingJournal()
    await run("root", {}, registry, journal=undisturbed)
    expected = read.pop()
    assert expected == [
        "",
        "1 action_call 1 action_result",
        "1 action_call 1 action_result 2 action_call 2 action_result",
    ]
    for n in range(1, len(undisturbed.records)):
        journal = CrashingJournal(crash=CrashPoint(n, after=True))
        with pytest.raises(Crash):
            await run("root", {}, registry, journal=journal)
        final = await run("root", {}, registry, journal.ledger)
        assert differences(final, undisturbed.ledger) == []
        assert read[-1] == expected


async def test_of_calls_side_by_side_a_ledger_has_the_order_of_the_calls() -> None:
    """Whichever ends first, also after a crash: who decides by the order decides the same (S110, S119)."""
    registry, read, first = PolicyRegistry(), list[list[str]](), asyncio.Event()

    @registry.register("waits")
    async def waits(action: Action, ctx: Context) -> list[Step]:
        await first.wait()
        return []

    @registry.register("ends")
    async def ends(action: Action, ctx: Context) -> list[Step]:
        first.set()
        return []

    @registry.register("root")
    async def root(action: Action, ctx: Context) -> list[Step]:
        await ctx.gather(ctx.call(Action("waits")), ctx.call(Action("ends")))
        read.append(lines(ctx.get_ledger()))
        return []

    ledger = await run("root", {}, registry)
    assert lines(ledger)[3:5] == ["2 action_result", "1 action_result"]
    assert read == [["1 action_call", "1 action_result", "2 action_call", "2 action_result"]]
    await run("root", {}, registry, ledger[:3])
    assert read[1] == read[0]


async def test_a_call_on_its_way_is_not_in_the_ledger() -> None:
    """Only what this context has been given is: the calls that were asked for, and the results of those it invoked."""
    registry, read = PolicyRegistry(), list[list[str]]()

    def policy(name: str) -> Callable[[Policy], Policy]:
        return registry.register(name)

    @policy("asks")
    async def asks(action: Action, ctx: Context) -> list[Step]:
        return [action_call("asks", "done", {"n": n}) for n in range(2)]

    @policy("done")
    async def done(action: Action, ctx: Context) -> list[Step]:
        return []

    @policy("root")
    async def root(action: Action, ctx: Context) -> list[Step]:
        first, _ = (step for step in await ctx.call(Action("asks")) if step.type == "action_call")
        waiting = ctx.call(Action("done"))
        read.append(lines(ctx.get_ledger()))
        await ctx.invoke(first)
        read.append(lines(ctx.get_ledger()))
        await waiting
        return []

    ledger = await run("root", {}, registry)
    asked = ["1 action_call", "1/0 action_call", "1/1 action_call", "1 action_result"]
    assert read == [asked, [*asked, "1/0 action_result"]]
    await run("root", {}, registry, ledger[:-1])
    assert read[2:] == read[:2]
