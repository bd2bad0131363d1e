"""Tools: what they are given, what happens to what they return and raise, and which run concurrently."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import AliasChoices, AliasPath, BaseModel, Field, RootModel, field_serializer
from typing_extensions import TypedDict

from agents.engine.errors import RegistryError, ToolError
from agents.engine.interfaces.messages import AssistantMessage
from agents.engine.ledger import DEEPEST, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Risk, ToolCall, tool, wire_name
from agents.engine.view import View
from tests.engine.cast import Name, Number, World, site
from tests.engine.journals import NOON, CrashingJournal
from tests.engine.support import Site, call, carry_on, decide, end_of, lines, results_in, says, seen


async def done(function: Any, **more: Any) -> tuple[dict[str, Any], str]:
    """The recorded result of one call of a READ tool made of `function`, and what the model reads of it."""
    function.__annotations__["call"] = ToolCall[Number]
    each = tool("each", risk=Risk.READ)(function)
    registry, provider = site([says("", call("each", a=1)), says("Done.")], [each])
    result = View(await carry_on(registry, **more)).result("1/0")
    assert result
    assert result.payload.pop("began") == NOON.isoformat()
    return result.payload, results_in(provider.asked[1])[0]


class Answer(BaseModel):
    said: str


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        ("text", "text"),
        (None, None),
        ({"a": [1, 2.5, True]}, {"a": [1, 2.5, True]}),
        ((1, 2), [1, 2]),
        (Answer(said="x"), {"said": "x"}),
        ("a\x00b", "a\ufffdb"),
        ({"k\x00": "\ud800"}, {"k\ufffd": "\ufffd"}),
    ],
)
async def test_what_a_tool_returns_is_recorded_as_json(returned: Any, output: Any) -> None:
    """JSON as it is, models dumped, text made valid."""
    assert (await done(lambda call: returned))[0] == {"output": output}


def _raise(error: BaseException) -> Any:
    def function(call: Any) -> None:
        raise error

    return function


def _raise_in_loop(error: BaseException) -> Any:
    async def function(call: Any) -> None:
        raise error

    return function


@pytest.mark.parametrize("make", [_raise, _raise_in_loop], ids=["thread", "coroutine"])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ToolError("No such file.", code="not_found"), "not_found", "No such file."),
        (ValueError("odd"), "exception", "ValueError: odd"),
        (AssertionError("bug"), "exception", "AssertionError: bug"),
        (TimeoutError("socket"), "exception", "TimeoutError: socket"),
        (SystemExit(1), "exception", "SystemExit: 1"),
        (asyncio.CancelledError(), "exception", "CancelledError: the tool gave itself up"),
    ],
)
async def test_whatever_a_tool_raises_is_its_result(make: Any, error: BaseException, code: str, message: str) -> None:
    """The model sees the error and the loop goes on; a tool's own TimeoutError is not the time limit (S27, R16)."""
    payload, read = await done(make(error))
    assert payload == {"error": True, "code": code, "message": message}
    assert read == f"Error ({code}): {message}"


async def test_a_thread_that_raises_stop_iteration_does_not_hang() -> None:
    """A future refuses StopIteration, so it is made an error that passes."""
    payload, _ = await done(lambda call: next(iter(())))
    assert payload["code"] == "exception"


async def test_what_is_no_json_is_an_error() -> None:
    """The model reads why, and that the tool ran."""
    _, read = await done(lambda call: {"a": object()})
    ran = "It ran, but its result could not be saved."
    assert read == f"Error (not_kept): {ran} TypeError: a object is not JSON"


async def test_a_big_result_is_kept_whole_and_read_in_part() -> None:
    """Head, tail, what is left out between them, and how to read on there (S77)."""
    payload, read = await done(lambda call: "a" * 50 + "b" * 50, limits=Limits(result_characters=30))
    assert len(payload["output"]) == 100
    gap = 'from 20 to 90; results_read with {"result": "1:1/0", "offset": 20} reads on'
    assert read == f"{'a' * 20}\n[... truncated: 70 of 100 characters left out, {gap} ...]\n{'b' * 10}"


async def test_a_tool_is_given_who_it_acts_for() -> None:
    """User, validated input, services, path and a key of its own (S23)."""
    given: list[ToolCall[Any]] = []

    def function(call: ToolCall[Any]) -> None:
        given.append(call)

    await done(function, services=Site(user=5))
    each = given[0]
    assert (each.user, each.input, each.path, each.attempt, len(each.key)) == (5, Number(a=1), "1/0", 1, 64)


async def test_reads_run_side_by_side_and_writes_alone(world: World) -> None:
    """Neighbours that only read run together; outputs and messages stand in call order whatever ends first."""
    begun: list[int] = []
    both = asyncio.Event()

    async def wait(call: ToolCall[Any]) -> None:
        begun.append(call.input.a)
        if len(begun) == 2:
            both.set()
        await both.wait()
        if call.input.a == 1:
            await asyncio.sleep(0)

    world.at["fx.read"] = wait
    batch = says("", call("fx.read", a=1), call("fx.read", a=2), call("touch", name="x"), call("fx.read", a=3))
    registry, provider = site([batch, says("Done.")], world.tools())
    ledger = await carry_on(registry)
    assert begun == [1, 2, 3]
    assert [what for _, what in world.done][2:] == ["x", 3]
    assert results_in(provider.asked[1]) == ["read 1", "read 2", "touched x", "read 3"]
    assert [o.path for o in Outputs(ledger).in_order() if o.type == "tool"] == ["1/0", "1/1", "1/2", "1/3"]


async def test_a_read_needs_no_start_and_an_effect_has_one(world: World) -> None:
    """The answer that asks is durable before anything reaches outside (R15)."""
    seen_in_effect: list[list[str]] = []
    journal = CrashingJournal()
    for name in ("fx.read", "report.write"):
        world.at[name] = lambda call: seen_in_effect.append(lines(journal.ledger))
    batch = says("", call("fx.read", a=1), call("report.write", name="x"))
    await carry_on(site([batch, says("Done.")], world.tools())[0], journal=journal)
    assert seen_in_effect[0][-1] == "1 action_result"
    assert seen_in_effect[1][-1] == "1/1 action_start"


async def test_what_a_call_emits_stands_in_its_results_record(world: World) -> None:
    """Files and widgets in the order of emission, below their entry, the file stored before (S8, S9, S24)."""
    registry, provider = site([says("", call("report.write", name="x")), says("Done.")], world.tools())
    journal, services = CrashingJournal(), Site()
    await carry_on(registry, journal=journal, services=services)
    record = next(r for r in journal.records if "1/0 action_result" in lines(r.steps))
    assert [(s.type, s.actor) for s in record.steps] == [
        (kind, "tool:report.write") for kind in ("file", "widget", "action_result")
    ]
    assert record.steps[0].payload == {"file": 1, "name": "a.txt", "summary": "S"}
    assert services.files == ["a.txt"]
    assert b"one row" not in b"".join(provider.asked[1].history)


async def test_changing_emitted_data_later_does_not_change_what_was_emitted() -> None:
    """Each widget keeps the data it was shown with."""

    def function(call: Any) -> None:
        data = {"n": 0}
        for data["n"] in (1, 2):
            call.widget("progress", data, "")

    function.__annotations__["call"] = ToolCall[Number]
    registry, _ = site([says("", call("each", a=1)), says("Done.")], [tool("each", risk=Risk.READ)(function)])
    ledger: Ledger = await carry_on(registry)
    assert [step.payload["data"]["n"] for step in ledger if step.type == "widget"] == [1, 2]


def _no_model(call: ToolCall) -> None:
    """Takes nothing."""


def _two(call: ToolCall[Name], other: int) -> None: ...


def test_a_tool_declares_what_makes_sense() -> None:
    """Bad names, limits, parameters are refused where the tool is made; defaults are the careful ones (R18)."""
    plain = tool("plain.tool")(_no_model)
    assert (plain.risk, plain.approval, plain.idempotent) == (Risk.DESTRUCTIVE, True, False)
    assert (plain.description, plain.schema["additionalProperties"]) == ("Takes nothing.", False)
    reads = tool("reads", risk=Risk.READ)(_no_model)
    assert (reads.approval, reads.idempotent) == (False, True)
    for name, more, function in [("Bad Name", {}, _no_model), ("a", {"time_limit": 601}, _no_model), ("a", {}, _two)]:
        with pytest.raises(RegistryError):
            tool(name, **more)(function)  # type: ignore[arg-type]


def test_wire_names_are_what_model_apis_take() -> None:
    """[A-Za-z0-9_-]{1,64}; two long names stay two (R26)."""
    assert wire_name("system.delete-data") == "system_delete-data"
    long = "a." + "b" * 80
    assert len(wire_name(long)) == 64
    assert wire_name(long) != wire_name(long + "c")


class Receiver(BaseModel):
    name: str


class Free(BaseModel, extra="allow"):
    name: str


class Pages(TypedDict):
    first: int


@dataclass
class Size:
    width: int


class Signed(RootModel[dict[str, Free]]):
    """A model nested in an input."""


class Letter(BaseModel):
    """An input with others in it, of every kind."""

    to: Receiver
    copies: list[Receiver] = []
    by: dict[str, Receiver] = {}
    instead: Receiver | int | None = None
    pages: Pages | None = None
    size: Size | None = None
    more: Free | None = None
    post: Free | None = Field(None, validation_alias="by_post")
    seen: Free | None = Field(None, validation_alias=AliasChoices("seen_by", AliasPath("read", "by")), exclude=True)
    years: dict[int, Free] = {}
    signed: Signed = Signed({})
    dated: Free | None = None

    @field_serializer("dated")
    def _fails(self, value: Free | None) -> str:
        raise RuntimeError


ANN = {"name": "Ann"}
EVIL = {"name": "Ann", "bcc": "evil"}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"to": EVIL}, "to.bcc"),
        ({"to": ANN, "copies": [ANN, EVIL]}, "copies.1.bcc"),
        ({"to": ANN, "by": {"post": EVIL}}, "by.post.bcc"),
        ({"to": ANN, "instead": EVIL}, "instead.Receiver.bcc"),
        ({"to": ANN, "pages": {"first": 1, "last": 2}}, "pages.last"),
        ({"to": ANN, "size": {"width": 1, "depth": 2}}, "size.depth"),
        ({"to": ANN, "more": EVIL}, None),
        ({"to": ANN, "by_post": EVIL}, None),
        ({"to": ANN, "seen_by": EVIL}, None),
        ({"to": ANN, "years": {"1999": EVIL}}, None),
        ({"to": ANN, "signed": {"Bob": EVIL}}, None),
        ({"to": ANN, "dated": EVIL}, None),
    ],
)
async def test_a_key_that_nobody_knows_is_refused_at_any_depth(given: dict[str, Any], place: str | None) -> None:
    """Or a person would approve what is dropped before it runs (I6); what a model itself takes, it gets."""
    ran: list[Letter] = []

    @tool("post", approval=True)
    async def post(call: ToolCall[Letter]) -> None:
        ran.append(call.input)

    registry, provider = site([says("", call("post", **given)), says("Done.")], [post])
    ledger = await carry_on(registry)
    if place is None:
        await carry_on(registry, decide(ledger, "1/0/human"))
        read = ran[0]
        taken = (read.more, read.post, read.seen, read.dated, *read.years.values(), *read.signed.root.values())
        assert [each.model_dump() for each in taken if each] == [EVIL]
    else:
        assert results_in(provider.asked[1]) == [f"Error (invalid_input): {place}: not known"]
    assert Draft202012Validator(post.schema).is_valid(given) == (place is None)


class Anything(BaseModel):
    a: Any


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(("levels", "fine"), [(DEEPEST - 1, True), (DEEPEST, False), (5000, False)])
async def test_arguments_that_are_nested_too_deep_are_an_error_the_model_sees(levels: int, fine: bool) -> None:
    """No answer of a model ends the turn (S27)."""

    @tool("each", risk=Risk.READ)
    async def each(call: ToolCall[Anything]) -> str:
        return "read"

    registry, provider = site([says("", call("each", a=nested(levels))), says("Done.")], [each])
    ledger = await carry_on(registry)
    told = f"Error (invalid_input): The arguments are not a JSON object: '[nested more than {DEEPEST} levels deep]'"
    assert results_in(provider.asked[1]) == (["read"] if fine else [told])
    assert end_of(ledger)


@pytest.mark.parametrize(("levels", "fine"), [(DEEPEST, True), (DEEPEST + 1, False), (5000, False)])
async def test_a_result_that_is_nested_too_deep_is_an_error(levels: int, fine: bool) -> None:
    """It is an error of the tool, not of the site."""

    async def each(call: Any) -> Any:
        return nested(levels)

    result, _ = await done(each)
    assert result.get("code") == (None if fine else "not_kept")


async def test_blanks_beside_calls_are_no_text(world: World) -> None:
    """They are neither shown nor sent back: some APIs refuse a message of blanks."""
    registry, provider = site([says("\n\n", call("fx.read", a=1)), says("Done.")], world.tools())
    ledger = await carry_on(registry)
    assert [step.payload["text"] for step in ledger if step.type == "text"] == ["Done."]
    assert [m.text for m in seen(provider.asked[1]) if isinstance(m, AssistantMessage)] == [""]
