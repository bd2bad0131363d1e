"""What people write as the design shows it is taken, or refused with a sentence; nothing is lost in silence."""

import uuid
from typing import Any

import pytest

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, invoke_action, loop_wrapper, run
from agents.engine.agent.ledger_history import ledger_messages
from agents.engine.agent.model import model
from agents.engine.interfaces.messages import AssistantMessage, UserMessage
from agents.engine.ledger import EMPTY, action_call, action_result, text
from agents.engine.runtime.policy import Policy
from agents.engine.view import View
from tests.engine.support import ScriptedProvider, lines, says, seen
from tests.judge import comparable


def made(type: str, payload: Any, actor: str = "assistant") -> Step:
    """A step as the design's own examples make it: with a UUID for an id."""
    return Step(id=str(uuid.uuid4()), actor=actor, type=type, payload=payload)  # type: ignore[arg-type]


def registry_of(**policies: Policy) -> PolicyRegistry:
    registry = PolicyRegistry()
    for name, policy in policies.items():
        registry.register(name)(policy)
    return registry


async def run_root(policy: Policy, ledger: Ledger = EMPTY, **others: Policy) -> Ledger:
    return await run("root", {}, registry_of(root=policy, **others), ledger)


async def ok(action: Action, ctx: Context) -> list[Step]:
    return [action_result("policy:ok", "fine")]


# Steps


async def test_steps_with_ids_of_their_own_are_kept_and_numbered() -> None:
    """What a policy says is recorded whatever id it gives it, a text or a number that another step has (S105, S115)."""

    async def policy(action: Action, ctx: Context) -> list[Step]:
        return [made("text", {"text": "one"}), Step("root", "text", {"text": "two"}, id=1), text("root", "three")]

    ledger = await run_root(policy)
    assert [step.payload["text"] for step in ledger if step.type == "text"] == ["one", "two", "three"]
    assert [step.id for step in ledger] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("id", [0, 7, "x"])
def test_a_payload_is_checked_whatever_the_id(id: Any) -> None:
    with pytest.raises(TypeError, match=r"payload\.rows: a set is not JSON"):
        Step("x", "text", {"rows": {1}}, id=id)


async def test_a_step_of_another_ledger_is_new_here() -> None:
    """Only a step of this turn's own ledger is passed on, not one of another that has the same id (S107)."""
    other = Ledger((text("user", "before"), text("assistant", "said elsewhere"))).numbered()

    async def policy(action: Action, ctx: Context) -> list[Step]:
        return list(other)

    ledger = await run_root(policy)
    assert [step.payload["text"] for step in ledger if step.type == "text"] == ["before", "said elsewhere"]


# Paths and keys


async def test_calls_that_are_asked_for_and_calls_that_are_made_have_paths_of_their_own() -> None:
    """A policy that makes calls and also returns some loses none of either."""

    async def policy(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(Action("ok"))
        await ctx.call(Action("ok"), key="0")
        return [made("action_call", {"policy": "ok", "payload": {"n": n}}, "root") for n in range(3)]

    ledger = await run_root(policy, ok=ok)
    asked = {step.path: step.payload["payload"] for step in ledger if step.type == "action_call" and step.path}
    assert asked == {"1": {}, "0": {}, "2": {"n": 0}, "3": {"n": 1}, "4": {"n": 2}}


@pytest.mark.parametrize("key", ["", "a/b", "human", "card1", "card12"])
async def test_a_key_that_cannot_name_a_call_is_refused(key: str) -> None:
    """A key is one part of a path, and not the name of a gate or a card."""

    async def policy(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("ok"), key=key)

    with pytest.raises(ValueError, match=f"'{key}' cannot be the key of a call"):
        await run_root(policy, ok=ok)


@pytest.mark.parametrize("first", [None, "a", "1"])
async def test_a_key_names_one_call(first: str | None) -> None:
    """The second use raises before that call does anything, also of a number that a call without a key took (S118)."""
    ran: list[int] = []

    async def counts(action: Action, ctx: Context) -> list[Step]:
        ran.append(action.payload["n"])
        return []

    async def policy(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(Action("counts", {"n": 1}), key=first)
        return await ctx.call(Action("counts", {"n": 2}), key=first or "1")

    with pytest.raises(ValueError, match="two calls of 'root' have the key"):
        await run_root(policy, counts=counts)
    assert ran == [1]


# Values


@pytest.mark.parametrize(
    ("payload", "value", "failed"),
    [
        ({"output": 5}, 5, False),
        ({"output": None, "city": "Oslo"}, None, False),
        ({"city": "Oslo", "temp_c": 12}, {"city": "Oslo", "temp_c": 12}, False),
        ({}, None, False),
        ({"error": True, "code": "NOT_FOUND", "message": "No."}, ..., True),
        ({"error": "disk", "status": 500}, {"error": "disk", "status": 500}, False),
        ({"error": True, "count": 3}, {"error": True, "count": 3}, False),
        ({"error": True, "code": 404, "message": "No."}, {"error": True, "code": 404, "message": "No."}, False),
    ],
)
async def test_a_result_may_have_any_payload(payload: Any, value: Any, failed: bool) -> None:
    """Its value is its output, or else all of it; it is an error only in the shape of one (S115)."""
    got: list[Step] = []

    async def policy(action: Action, ctx: Context) -> list[Step]:
        got.extend(await ctx.call(Action("weather")))
        return got

    async def weather(action: Action, ctx: Context) -> list[Step]:
        return [made("action_result", payload, "weather")]

    ledger = await run_root(policy, weather=weather)
    assert (got[-1].payload, got[-1].failed) == (payload, failed)
    assert failed or got[-1].value == value
    assert View(ledger).result("1").payload == payload  # type: ignore[union-attr]


async def test_roles_and_values_reach_the_model() -> None:
    """Texts by `user` and `assistant` are theirs; a result without `output` is told whole (S115, S116, S128)."""

    async def weather(action: Action, ctx: Context) -> list[Step]:
        return [made("action_result", {"city": "Oslo", "temp_c": 12}, "weather")]

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return [
            made("text", {"text": "Is it cold?"}, "user"),
            made("text", {"text": "Let me look."}),
            made("action_call", {"policy": "weather", "payload": {"city": "Oslo"}}),
        ]

    async def policy(action: Action, ctx: Context) -> list[Step]:
        said = await ctx.call(Action("asks"))
        said += await ctx.invoke(next(step for step in said if step.type == "action_call"))
        await ctx.call(Action("model", {"ledger": Ledger(tuple(said))}))
        return []

    provider = ScriptedProvider([says("Unused."), says("Rather.")])
    await run_root(policy, asks=asks, weather=weather, model=model(provider))
    question, answer, result = seen(provider.asked[0])
    assert question == UserMessage("Is it cold?")
    assert isinstance(answer, AssistantMessage)
    assert (answer.text, answer.calls[0].name, answer.calls[0].arguments) == (
        "Let me look.",
        "weather",
        {"city": "Oslo"},
    )
    assert result.content == '{"city": "Oslo", "temp_c": 12}'  # type: ignore[union-attr]


def test_a_conversation_of_roles_is_told_as_one() -> None:
    steps = [text("user", "Hi."), text("assistant", "Hello."), text("user", "Well?")]
    assert ledger_messages(steps) == [UserMessage("Hi."), AssistantMessage("Hello."), UserMessage("Well?")]


# Actions


async def test_an_action_keeps_what_it_was_made_of() -> None:
    """Whoever made it may go on changing their dict, and the policy its own; neither sees the other's (S104)."""
    given: dict[str, Any] = {"rows": [1]}
    action = Action("changes", given)
    given["rows"].append(2)

    async def changes(action: Action, ctx: Context) -> list[Step]:
        action.payload["rows"].append(3)
        action.payload["more"] = True
        return []

    async def policy(_: Action, ctx: Context) -> list[Step]:
        await ctx.call(action)
        return []

    ledger = await run_root(policy, changes=changes)
    assert action.payload == {"rows": [1]}
    assert ledger[1].payload["payload"] == {"rows": [1]}


def test_an_action_refuses_what_is_not_json() -> None:
    with pytest.raises(TypeError, match=r"payload\.when: a UUID is not JSON"):
        Action("x", {"when": uuid.uuid4()})
    with pytest.raises(TypeError, match=r"payload\.ledger\[0\]: a Step is not JSON"):
        Action("x", {"ledger": [text("user", "Hi.")]})


# Answers


def _returns(*steps: Any) -> Policy:
    async def policy(action: Action, ctx: Context) -> Any:
        return list(steps)

    return policy


async def _none(action: Action, ctx: Context) -> Any:
    return None


@pytest.mark.parametrize(
    ("policy", "error", "why"),
    [
        (_none, TypeError, "the policy 'root' returned a NoneType; it must return a list of steps"),
        (_returns("done"), TypeError, "the policy 'root' returned a str among its steps"),
        (_returns(action_result("x", 1), action_result("x", 2)), ValueError, "the policy 'root' returned 2 results"),
        (_returns(action_call("user:1", "ok")), ValueError, "the policy 'root' returned a call by 'user:1'"),
        (_returns(action_call("runtime", "ok")), ValueError, "the policy 'root' returned a call by 'runtime'"),
        (
            _returns(action_call("policy:other", "ok")),
            ValueError,
            "the policy 'root' returned a call by 'policy:other'",
        ),
    ],
)
async def test_what_is_no_answer_is_refused(policy: Policy, error: type[Exception], why: str) -> None:
    """A sentence says what is wrong with it, and nothing of it is recorded."""
    with pytest.raises(error, match=why) as raised:
        await run_root(policy)
    assert lines(raised.value.ledger) == [". action_call"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("actor", ["model", "assistant", "root", "policy:root"])
async def test_a_policy_and_a_model_may_ask(actor: str) -> None:
    """A call that an answer asks for is found again, whoever of them asks."""
    ledger = await run_root(_returns(made("action_call", {"policy": "ok", "payload": {}}, actor)))
    assert [step.path for step in View(ledger).emitted("")] == ["0"]


# The runner


async def test_the_ledger_of_a_crashed_run_is_on_its_error() -> None:
    """A run that breaks off loses nothing: another continues from there, and does nothing twice (S121, S124)."""
    ran: list[str] = []

    async def works(action: Action, ctx: Context) -> list[Step]:
        ran.append("works")
        return []

    async def policy(action: Action, ctx: Context) -> list[Step]:
        await ctx.call(Action("works"))
        if len(ran) == 1:
            ran.append("breaks")
            raise RuntimeError("a bug")
        return [text("root", "done")]

    with pytest.raises(RuntimeError, match="a bug") as raised:
        await run_root(policy, works=works)
    final = await run_root(policy, raised.value.ledger, works=works)  # type: ignore[attr-defined]
    assert ran == ["works", "breaks"]
    assert lines(final) == [". action_call", "1 action_call", "1 action_result", ". text", ". action_result"]


async def test_a_list_is_no_ledger() -> None:
    with pytest.raises(TypeError, match="the ledger of a run must be a Ledger, not a list"):
        await run_root(ok, [text("user", "Hi.")])  # type: ignore[arg-type]


async def test_what_is_passed_on_is_what_the_caller_is_given() -> None:
    """Through several policies, each step once, and of an answer no more than the policy returned."""
    given: dict[str, list[Step]] = {}

    async def model(action: Action, ctx: Context) -> list[Step]:
        if action.ledger.steps:
            return [text("assistant", "It is hot.")]
        return [text("assistant", "I look."), action_call("assistant", "look")]

    async def look(action: Action, ctx: Context) -> list[Step]:
        return [text("look", "Looking."), action_result("look", "hot")]

    async def agent(action: Action, ctx: Context) -> list[Step]:
        asked = Action("model", {"ledger": Ledger()}, frozenset({"look"}))
        return await ctx.call(asked, [loop_wrapper(3), invoke_action()])

    async def outer(action: Action, ctx: Context) -> list[Step]:
        given["agent"] = await ctx.call(Action("agent"))
        return [step for step in given["agent"] if step.type == "text"]

    async def root(action: Action, ctx: Context) -> list[Step]:
        given["outer"] = await ctx.call(Action("outer"))
        given["ledger"] = list(await ctx.get_ledger())
        return given["ledger"]

    policies = {"model": model, "look": look, "agent": agent, "outer": outer, "root": root}
    ledger = await run("root", {}, policies)
    lines = {name: [(s.type, s.payload.get("text")) for s in steps] for name, steps in given.items()}
    said = [("text", "I look."), ("action_call", None), ("text", "Looking."), ("action_result", None)]
    assert lines["agent"] == [*said, ("text", "It is hot."), ("action_result", None)]
    assert lines["outer"] == [
        ("text", "I look."),
        ("text", "Looking."),
        ("text", "It is hot."),
        ("action_result", None),
    ]
    assert lines["ledger"] == [("action_call", None), ("action_result", None)]
    given.clear()
    assert comparable(await run("root", {}, policies, ledger[:-1])) == comparable(ledger)
    assert {name: [(s.type, s.payload.get("text")) for s in steps] for name, steps in given.items()} == {
        name: lines[name] for name in ("outer", "ledger")
    }


@pytest.mark.parametrize(
    "payload", [{"output": 21}, {"city": "Rome", "temp_c": 21}, {"error": True, "code": "c", "message": "m"}]
)
async def test_a_policy_that_returns_the_answer_of_another_has_its_result(payload: dict[str, Any]) -> None:
    """Its caller reads the same value or error, once (S115)."""
    given: list[Step] = []

    async def weather(action: Action, ctx: Context) -> list[Step]:
        return [Step("weather", "action_result", payload)]

    async def between(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("weather"))

    async def root(action: Action, ctx: Context) -> list[Step]:
        given.extend(await ctx.call(Action("between")))
        return []

    await run("root", {}, {"weather": weather, "between": between, "root": root})
    assert [(step.type, step.payload) for step in given] == [("action_result", payload)]
