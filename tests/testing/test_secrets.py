"""Secrets of workflows in trials: recorded, given to tools and refused as on a site, whatever process dies when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretBytes, SecretStr, field_validator

from agents.engine.agent.offered import offered
from agents.engine.agent.turn import agent
from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import JSON, Ledger, canonical
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Registered
from agents.engine.runtime.registry import policy
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.testing import Trials, TrialServices, asks, run
from agents.testing.trial import Trial
from tests.workflows import vault
from workflows import Flow, workflow


@pytest.fixture(autouse=True)
def _unused() -> None:
    vault.USED.clear()
    vault.USED_BY.clear()


def visit(secret: object = vault.LONG, dies_at: int | None = None) -> Trial:
    return Trials(dies_at=dies_at).run(vault.visit, tools=vault.TOOLS, host="office", password=secret)


def told(ledger: Ledger) -> str:
    return canonical([[step.actor, step.type, step.path, step.payload] for step in ledger])


def test_a_trial_records_a_reference_and_gives_the_value_to_tools() -> None:
    trial = visit()
    assert trial.ledger[0].payload["payload"]["input"]["password"] == {"$secret": "password"}
    trial.approve().answer(f"It is {vault.LONG}.")
    assert vault.USED == [("office", vault.LONG)] * 2
    assert trial.value["answer"] == "It is [secret]."
    assert vault.LONG not in told(trial.ledger) + str(trial.outputs) + repr(trial.services)
    assert vault.LONG not in str([(file.name, file.summary) for file in trial.files])


def test_whatever_process_dies_when_it_is_used_once_and_told_never() -> None:
    whole = visit()
    whole.approve().answer("Yes.")
    for record in range(1, whole.records + 1):
        vault.USED_BY.clear()
        trial = visit(SecretStr(vault.LONG), dies_at=record)
        while trial.waiting:
            (path,) = trial.waiting
            asked = trial.waiting[path].ask
            if asked == "approve":
                trial.approve(path)
            else:
                trial.answer("it_did_not" if asked == "interrupted" else "Yes.", path)
        assert trial.state == "completed", record
        counted = Counter(vault.USED_BY)
        assert (counted["vault.login"], counted["vault.pin"] <= 2) == (1, True), record  # one that reads may run again
        assert vault.LONG not in told(trial.ledger), record


@pytest.mark.parametrize("other", [{"$secret": "otp"}, "typed"])
def test_whoever_edits_a_call_gives_it_no_other_secret(other: object) -> None:
    trial = visit()
    trial.approve(input={"host": "elsewhere", "password": other, "otp": None}).answer("Yes.")
    assert trial.value["said"]["code"] == "invalid_input"
    assert vault.USED == [("office", vault.LONG)]
    kept = visit().approve(input={"host": "elsewhere", "password": {"$secret": "password"}, "otp": None})
    assert vault.USED[-1] == ("elsewhere", vault.LONG)
    assert vault.LONG not in told(kept.ledger)


class Card(BaseModel):
    number: SecretStr = Field(min_length=12)
    holder: str = ""


@tool("pay.card", risk=Risk.READ)
def pay(call: ToolCall[Card]) -> int:
    """Pay."""
    return len(call.input.number.get_secret_value())


class Given(BaseModel):
    password: SecretStr
    free: Any = None


def flow_of(give: Any) -> Any:
    @workflow("trial.give")
    async def giving(flow: Flow[Given]) -> JSON:
        try:
            return await give(flow)
        except ToolError as error:
            return {"code": error.code, "message": error.message}

    return giving


def test_what_a_tool_wants_of_a_secret_is_asked_of_its_value() -> None:
    giving = flow_of(lambda flow: flow.tool("pay.card", number=flow.input.password))
    assert run(giving, tools=[pay], password=vault.LONG).value == len(vault.LONG)
    long_way = flow_of(lambda flow: flow.call(Action("pay.card", {"number": flow.input.password})))
    assert f'"output":{len(vault.LONG)}' in told(run(long_way, tools=[pay], password=vault.LONG).ledger)
    short = run(giving, tools=[pay], password="12345678")
    assert short.value["code"] == "invalid_input"
    assert "12345678" not in told(short.ledger)


@pytest.mark.parametrize(
    "give",
    [
        lambda flow: flow.tool("pay.card", number="x" * 12, holder=flow.input.password),
        lambda flow: flow.tool("pay.card", input={"number": "x" * 12, "holder": {"$secret": "password"}}),
        lambda flow: flow.tool("pay.card", number={"$secret": "another"}),
    ],
)
def test_only_a_parameter_for_a_secret_takes_one(give: Any) -> None:
    assert run(flow_of(give), tools=[pay], password=vault.LONG).value["code"] in ("invalid_input", "secret_missing")


@dataclass
class Held:
    secret: SecretStr


@pytest.mark.parametrize(
    "give",
    [
        lambda flow: flow.tool("pay.card", number=SecretStr("of my own")),
        lambda flow: flow.tool("pay.card", number=vault.LONG, holder=[flow.input.password]),
        lambda flow: flow.tool("pay.card", input=Card(number=SecretStr("of my own, long"))),
        lambda flow: flow.tool("pay.card", holder=Held(flow.input.password)),
        lambda flow: flow.workflow("trial.give", password=SecretStr("of my own")),
        lambda flow: flow.call(Action("pay.card", {"number": SecretStr("of my own")})),
        lambda flow: flow.ask(Card),
    ],
)
def test_a_secret_that_would_be_recorded_is_refused(give: Any) -> None:
    trial = run(flow_of(give), tools=[pay], password=vault.LONG)
    with pytest.raises(ToolError, match=r"TypeError: .*(flow\.input\.password|SecretStr)"):
        _ = trial.value
    assert "of my own" not in told(trial.ledger)


def test_a_model_cannot_refer_to_one() -> None:
    """Whoever wrote what it read could have it sent anywhere."""

    def asked(flow: Flow[Given]) -> Any:
        return flow.agent("Pay.", tools=["pay.card"])

    for reference in ({"$secret": "password"}, "$secret:password"):
        script = [asks("pay.card", number=reference), "Done."]
        trial = run(flow_of(asked), tools=[pay], script=script, password=vault.LONG)
        results = [each for question in trial.asked for each in question.results]
        assert any("secret of the run" in each for each in results) or results == ["16"]  # a text like any other


def test_a_policy_that_a_model_asks_for_cannot_refer_to_one_either() -> None:

    @policy("pay.for_me", offered=True)
    async def pays(action: Action, ctx: Any) -> Any:
        return ctx.done(await ctx.tool("pay.card", number=action.payload["with"]["it"]))

    def asked(flow: Flow[Given]) -> Any:
        return flow.agent("Pay.")

    script = [asks("pay.for_me", **{"with": {"it": {"$secret": "password"}}}), "Done."]
    registered = [pays, Registered("agent", agent(tools=[offered(pays)]))]
    trial = run(flow_of(asked), tools=[pay], policies=registered, script=script, password=vault.LONG)
    assert trial.value == "Done."
    (result,) = [each for question in trial.asked for each in question.results]
    assert "a secret of the run cannot be given here" in result


def test_a_workflow_within_takes_a_secret_of_the_run_alone() -> None:
    trial = run(vault.outer, policies=[vault.inner], tools=vault.TOOLS, host="x", password=vault.LONG)
    assert trial.value == len(vault.LONG)
    literal = flow_of(lambda flow: flow.workflow("vault.inner", host="x", token="typed in code"))
    assert run(literal, policies=[vault.inner], tools=vault.TOOLS, password=vault.LONG).value["code"] == "invalid_input"


def test_a_missing_secret_is_missing() -> None:
    with pytest.raises(ToolError) as missing:
        TrialServices().secret("password")
    assert missing.value.code == "secret_missing"


# What is refused before anything starts


class Nested(BaseModel):
    card: Card


class Listed(BaseModel):
    keys: list[SecretStr]


class Bytes(BaseModel):
    key: SecretBytes


class Either(BaseModel):
    key: SecretStr | str


class Checked(BaseModel):
    key: SecretStr

    @field_validator("key")
    @classmethod
    def good(cls, value: SecretStr) -> SecretStr:
        return value


class CheckedAll(BaseModel):
    key: SecretStr

    @field_validator("*")
    @classmethod
    def good(cls, value: Any) -> Any:
        return value


class Known(BaseModel):
    key: SecretStr = SecretStr("known")


@pytest.mark.parametrize("model", [Nested, Listed, Bytes, Either, Checked, CheckedAll, Known])
def test_a_secret_that_could_not_be_kept_is_refused_at_once(model: type[BaseModel]) -> None:
    async def flow(flow: Any) -> None: ...

    with pytest.raises(RegistryError, match=r"trial\.refused"):
        workflow("trial.refused", input=model)(flow)


class Twice(BaseModel):
    key: Annotated[SecretStr, AfterValidator(lambda value: SecretStr(value.get_secret_value().strip()))]
    other: SecretStr | None = Field(default=None, alias="otherKey", min_length=30)


def test_what_the_model_makes_of_a_secret_is_kept_by_any_name() -> None:
    @tool("keys.join", risk=Risk.READ)
    def join(call: ToolCall[Card]) -> int:
        return len(call.input.number.get_secret_value())

    @workflow("trial.twice")
    async def twice(flow: Flow[Twice]) -> list[JSON]:
        assert flow.input.other
        return [await flow.tool("keys.join", number=each) for each in (flow.input.key, flow.input.other)]

    trial = run(twice, tools=[join], key=f"  {vault.LONG}  ", otherKey="x" * 30)
    assert trial.value == [len(vault.LONG), 30]
    assert trial.ledger[0].payload["payload"]["input"] == {"key": {"$secret": "key"}, "otherKey": {"$secret": "other"}}


class Optional(BaseModel):
    key: SecretStr | None = None


def test_nobody_is_there_to_enter_a_secret_in_the_night() -> None:
    async def needs(flow: Flow[Given]) -> None: ...
    async def takes(flow: Flow[Optional]) -> None: ...

    assert not workflow("trial.needs", schedulable=True)(needs).schedulable
    assert workflow("trial.takes")(takes).schedulable
    assert run(workflow("trial.takes")(takes)).state == "completed"
