"""Accidents of programs, each found by trying: none loses a call, runs one twice or changes the record in silence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, RootModel, field_validator

from agents.engine import Action, Context, Ledger, MemoryJournal, PolicyRegistry, Step, answer, approve, reject, run
from agents.engine.errors import NotKept, RegistryError
from agents.engine.ledger import EMPTY, action_call, text
from agents.engine.outputs.registry import check_kind
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.state import read_state, state_steps
from agents.engine.tools.tool import required_approval
from agents.engine.view import View


def played(root: Any, ledger: Ledger = EMPTY, **more: Any) -> Ledger:
    policies = {"root": root, **more.pop("policies", {})}
    return asyncio.run(run("root", {}, policies, ledger, **more))


class Sub:
    """A policy that counts its runs."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self, action: Action, ctx: Context) -> list[Step]:
        self.ran += 1
        return [Step("sub", "action_result", {"output": self.ran})]


async def calls_then_fails(action: Action, ctx: Context) -> list[Step]:
    await ctx.call(Action("sub"))
    raise KeyError("late")


def test_a_new_journal_goes_on_from_the_ledger_that_is_given() -> None:
    """It returned what this run added, and a call with a result ran again from there."""
    sub = Sub()
    with pytest.raises(KeyError) as first:
        played(calls_then_fails, policies={"sub": sub})
    for _ in range(2):
        before: Ledger = first.value.ledger  # type: ignore[attr-defined]
        with pytest.raises(KeyError) as first:
            played(calls_then_fails, before, policies={"sub": sub}, journal=MemoryJournal())
        assert len(first.value.ledger) == len(before)  # type: ignore[attr-defined]
    assert sub.ran == 1


async def asks(action: Action, ctx: Context) -> list[Step]:
    return await ctx.call(Action("human", {"question": "Go on?"}))


def test_a_journal_takes_over_a_decision_and_no_other_ledger() -> None:
    journal = MemoryJournal()
    waiting = played(asks, journal=journal)
    answered = answered_question(waiting)
    done = played(asks, answered, journal=journal)
    assert done.steps[: len(answered)] == answered.steps
    assert View(done).result("")
    with pytest.raises(ValueError, match="nobody is asked"):
        approve(done, "1", by="user:8")
    with pytest.raises(ValueError, match="another ledger"):
        played(asks, journal=journal)


def answered_question(ledger: Ledger) -> Ledger:
    with pytest.raises(ValueError, match="nobody is asked about the call at ''"):
        reject(ledger, "", by="user:7")  # the root itself asks nothing
    return answer(ledger, "1", by="user:7", answer="Yes.")


def test_a_policy_may_change_the_payload_of_its_context_too() -> None:
    given = Action("sub", {"list": [1]})

    async def sub(action: Action, ctx: Context) -> list[Step]:
        ctx.action.payload["list"].append(2)
        return [text("sub", str(action.payload["list"]))]

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(given)

    assert View(played(root, policies={"sub": sub})).call("1").payload["payload"] == {"list": [1]}  # type: ignore[union-attr]
    assert given.payload == {"list": [1]}


def test_only_what_an_answer_asked_for_is_invoked() -> None:
    """It ran at the path of the root, and entered that again."""

    async def root(action: Action, ctx: Context) -> list[Step]:
        return await ctx.invoke(action_call("root", "root", {}))

    with pytest.raises(ValueError, match="make other calls with"):
        played(root)


@pytest.mark.parametrize("type", ["cancel", "pause", "resume", "action_start", "action_retry", "action_deferred"])
def test_only_the_engine_writes_its_steps(type: str) -> None:
    async def root(action: Action, ctx: Context) -> list[Step]:
        return [Step("root", type, {"code": "x", "message": "y"})]

    with pytest.raises(ValueError, match="only the engine writes"):
        played(root)


@pytest.mark.parametrize("name", ["policy", "runtime", "policy:x", "user:1", "tool:x"])
def test_a_policy_does_not_read_as_an_actor(name: str) -> None:
    """The calls that it asks for were taken for the engine's own, and never ran."""
    with pytest.raises(RegistryError, match="reads as an actor"):
        PolicyRegistry({name: Sub()})


@pytest.mark.parametrize("reason", [0, None, [], False, {}])
def test_a_reason_that_is_no_text_does_not_open_a_gate(reason: object) -> None:
    with pytest.raises(ValueError, match="is not True, False, a reason"):
        required_approval({"required": False, "reason": reason})


class Count(BaseModel):
    count: int = 0

    @field_validator("count", mode="before")
    @classmethod
    def read(cls, count: Any) -> Any:
        return count["n"] if isinstance(count, dict) else count


class Counting(Plugin[Count]):
    """A plugin whose state reads an older form by hand."""

    name = "counting"


def test_a_state_whose_validator_raises_anything_begins_anew_with_a_note() -> None:
    view = View([Step("plugin:counting", "state", {"plugin": "counting", "value": {"count": {}}}, id=1)])
    assert read_state(Counting, view) == Count()
    noted = state_steps(Counting, Count(count=1), "plugin:counting", view)
    assert [step.type for step in noted] == ["note", "state"]


class Numbers(RootModel[list[int]]):
    root: list[int] = []


class Listing(Plugin[Numbers]):
    """A plugin whose state is no object."""

    name = "listing"


class Doubled(BaseModel):
    count: int = 0

    @field_validator("count")
    @classmethod
    def twice(cls, count: int) -> int:
        return count * 2


class Doubling(Plugin[Doubled]):
    """A plugin whose state is another one each time it is read."""

    name = "doubling"


@pytest.mark.parametrize("plugin", [Listing, Doubling])
def test_a_state_that_would_be_read_as_another_is_not_kept(plugin: Any) -> None:
    state = Numbers.model_construct([1]) if plugin is Listing else Doubled(count=1)
    with pytest.raises(ValueError, match="would be another one when it is read again"):
        state_steps(plugin, state, f"plugin:{plugin.name}", View())


def test_an_output_whose_validator_raises_anything_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.engine.outputs import registry

    class Odd:
        @staticmethod
        def model_validate(data: object) -> None:
            raise KeyError(5)

    kind = type("K", (), {"model": Odd})
    monkeypatch.setitem(registry._KINDS, "odd", kind)
    with pytest.raises(NotKept, match="5"):
        check_kind("odd", {})
