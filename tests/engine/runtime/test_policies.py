"""Policies call policies: what is recorded, what comes back, what each one sees."""

from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, ToolError, run
from agents.engine.interfaces.journal import MemoryJournal
from agents.engine.ledger import text
from tests.engine.support import lines
from tests.judge import comparable


class Query(BaseModel):
    query: str


@pytest.fixture
def registry() -> PolicyRegistry:
    registry = PolicyRegistry()

    @registry.register("search", input=Query)
    async def search(action: Action, ctx: Context) -> list[Step]:
        """Look it up."""
        query = action.payload["query"]
        if query == "bad":
            raise ToolError("Nothing there.", code="not_found")
        if query == "bug":
            raise AssertionError("a bug")
        return [text("policy:search", f"looking for {query}"), Step("x", "action_result", {"output": query.upper()})]

    return registry


def root(registry: PolicyRegistry, *actions: Action) -> None:
    """The policy `root`: calls these, one after the other, and says the last result."""

    @registry.register("root")
    async def policy(action: Action, ctx: Context) -> list[Step]:
        steps: list[Step] = []
        for each in actions:
            steps = await ctx.call(each)
        return [text("policy:root", str(steps[-1].payload.get("output", steps[-1].payload.get("message"))))]


async def test_a_call_and_its_result_stand_in_the_callers_ledger(registry: PolicyRegistry) -> None:
    """ctx.call appends action_call and action_result, and returns the callee's steps (S103, S109)."""
    root(registry, Action("search", {"query": "a"}))
    ledger = await run("root", {"text": "hi"}, registry)
    assert lines(ledger) == [
        ". action_call",
        "1 action_call",
        "1 text",
        "1 action_result",
        ". text",
        ". action_result",
    ]
    assert ledger[0].payload == {"policy": "root", "payload": {"text": "hi"}}
    assert ledger[1].actor == "policy:root"
    assert ledger[-2].payload == {"text": "A"}
    assert [step.id for step in ledger] == [1, 2, 3, 4, 5, 6]


async def test_a_call_is_recorded_before_its_policy_acts(registry: PolicyRegistry) -> None:
    """action_call is durable before execution (R15)."""
    journal = MemoryJournal()
    recorded: list[str] = []

    @registry.register("root")
    async def look(action: Action, ctx: Context) -> list[Step]:
        recorded.extend(lines(journal.ledger))
        return []

    await run("root", {}, registry, journal=journal)
    assert recorded == [". action_call"]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (Action("search", {"query": "bad"}), "not_found"),
        (Action("search", {"quary": "a"}), "invalid_input"),
        (Action("nothing"), "unknown_policy"),
    ],
)
async def test_an_error_that_the_caller_should_see_is_data(registry: PolicyRegistry, action: Action, code: str) -> None:
    """ToolError, refused input and an unknown name come back as an error result; the caller goes on (S123, R16)."""
    root(registry, action, Action("search", {"query": "after"}))
    ledger = await run("root", {}, registry)
    failed = next(step for step in ledger if step.path == "1" and step.type == "action_result")
    assert failed.payload["error"] is True
    assert failed.payload["code"] == code
    assert ledger[-2].payload == {"text": "AFTER"}


async def test_any_other_exception_propagates_and_again_at_the_same_place(registry: PolicyRegistry) -> None:
    """A bug fails the run, the ledger is safe, and a replay crashes there again without doing the rest again (S124)."""
    root(registry, Action("search", {"query": "a"}), Action("search", {"query": "bug"}))
    journal = MemoryJournal()
    with pytest.raises(AssertionError, match="a bug"):
        await run("root", {}, registry, journal=journal)
    before = journal.ledger
    assert lines(before)[-1] == "2 action_call"
    again = MemoryJournal(before)
    with pytest.raises(AssertionError, match="a bug"):
        await run("root", {}, registry, before, journal=again)
    assert again.ledger == before


async def test_a_policy_sees_its_own_ledger_only(registry: PolicyRegistry) -> None:
    """A sub-policy starts empty; it cannot see its caller's steps, nor its caller its inner ones (S107, S110)."""
    seen: dict[str, Ledger] = {}

    @registry.register("inner")
    async def inner(action: Action, ctx: Context) -> list[Step]:
        seen["at first"] = ctx.get_ledger()
        await ctx.call(Action("search", {"query": "a"}))
        seen["inner"] = ctx.get_ledger()
        return [text("policy:inner", "inside")]

    @registry.register("root")
    async def outer(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(Action("inner"))
        seen["outer"] = ctx.get_ledger()
        return []

    await run("root", {}, registry)
    assert not seen["at first"]
    assert lines(seen["inner"]) == ["1/1 action_call", "1/1 action_result"]
    assert lines(seen["outer"]) == ["1 action_call", "1 action_result"]


async def test_a_run_may_be_seeded(registry: PolicyRegistry) -> None:
    """A run's own ledger may begin with steps that the caller gives it; the engine numbers them (S107, R14)."""
    seen: list[Ledger] = []

    @registry.register("root")
    async def look(action: Action, ctx: Context) -> list[Step]:
        seen.append(ctx.get_ledger())
        return [text("policy:root", "hello")]

    ledger = await run("root", {}, registry, Ledger((text("user:1", "hi"), text("user:1", "there"))))
    assert [step.payload["text"] for step in seen[0]] == ["hi", "there"]
    assert [step.id for step in ledger] == [1, 2, 3, 4, 5]
    assert lines(ledger) == [". text", ". text", ". action_call", ". text", ". action_result"]


async def test_a_ledger_in_a_payload_is_recorded_as_a_reference(registry: PolicyRegistry) -> None:
    """The callee gets the ledger, the record `{seq, digest}` (R14)."""
    given = Ledger((text("user:1", "hi"),)).numbered()
    got: list[Any] = []

    @registry.register("reads")
    async def reads(action: Action, ctx: Context) -> list[Step]:
        got.append(action.payload["ledger"])
        return []

    root(registry, Action("reads", {"ledger": given}))
    ledger = await run("root", {}, registry)
    assert got == [given]
    assert ledger[1].payload["payload"] == {"ledger": given.reference()}


async def test_a_run_that_ended_is_not_run_again(registry: PolicyRegistry) -> None:
    """Policies run once; running from a whole ledger executes nothing and changes nothing (S118, S125)."""
    ran: list[int] = []

    @registry.register("root")
    async def policy(action: Action, ctx: Context) -> list[Step]:
        ran.append(1)
        return []

    ledger = await run("root", {}, registry)
    assert await run("root", {}, registry, ledger) == ledger
    assert ran == [1]


async def test_what_a_policy_passes_on_is_not_recorded_twice(registry: PolicyRegistry) -> None:
    """A policy that returns its callee's steps names them and has its result; the same on replay (S109)."""
    answers: list[Any] = []

    @registry.register("between")
    async def between(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("search", {"query": "a"}))

    @registry.register("root")
    async def outer(action: Action, ctx: Context) -> list[Step]:
        answers.append(comparable(await ctx.call(Action("between"))))
        return []

    ledger = await run("root", {}, registry)
    await run("root", {}, registry, ledger[:-1])
    assert lines(ledger).count("1/1 text") == 1
    assert ledger[-2].payload["returns"] == [["1/1", [0]]]
    assert [line[:2] for line in answers[0]] == [("1/1", "policy:search"), ("1", "x")]
    assert answers[0] == answers[1]


async def test_what_a_policy_does_to_a_payload_does_not_reach_the_ledger(registry: PolicyRegistry) -> None:
    """A policy may change what it was given; the record stays (S104, R14)."""

    @registry.register("changes")
    async def changes(action: Action, ctx: Context) -> list[Step]:
        action.payload["list"].append(2)
        return []

    @registry.register("root")
    async def outer(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(Action("changes", {"list": [1]}))
        return []

    ledger = await run("root", {}, registry)
    assert ledger[1].payload["payload"] == {"list": [1]}
