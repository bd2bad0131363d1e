"""Calls that ran but whose result could not be saved: they must not be mistaken for failed ones and run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, LiteralString, Never, NoReturn

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import Ledger
from agents.engine.outputs.kinds import FileOutput, Output, ToolOutput, WidgetOutput
from agents.engine.outputs.registry import load_output, register_output, unregister_output
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Counting, Name, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import Site, call, carry_on, end_of, lines, open_gates, results_in, says

SCRIPT = [says("", call("order", name="x")), says("Done.")]
RAN = "Error (not_kept): It ran, but its result could not be saved."


class Shop:
    """A service that takes and counts orders, and gives a receipt for each."""

    def __init__(self) -> None:
        self.orders = 0

    def tool(self, **more: Any) -> Tool:
        @tool("order", risk=Risk.WRITE, approval=False, **more)
        async def order(call: ToolCall[Name]) -> str:
            self.orders += 1
            call.file("receipt.txt", b"paid", media_type="text/plain", summary="Paid.")
            call.widget("table", {"rows": [1]}, "one row")
            return "ordered"

        return order


class Storage(Site):
    """A site whose storage raises this while it has something to raise."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        if self.errors:
            raise self.errors.pop()
        return await super().save_file(name, content, media_type, summary)


class Away(Exception):
    """The database is: an error of the site's own."""


async def broken_off(shop: Shop, **more: Any) -> Ledger:
    """The ledger of a turn whose order went out while the database was away."""
    journal = CrashingJournal()
    with pytest.raises(Away):
        await carry_on(site(SCRIPT, [shop.tool(**more)])[0], journal=journal, services=Storage(Away()))
    return journal.ledger


async def test_a_file_that_cannot_be_kept_does_not_undo_the_call() -> None:
    """The model reads that it ran, and why there is no result (R15)."""
    shop = Shop()
    registry, provider = site(SCRIPT, [shop.tool()])
    ledger = await carry_on(registry, services=Storage(ToolError("The disk is full.", code="disk_full")))
    assert results_in(provider.asked[1]) == [f"{RAN} The disk is full."]
    assert shop.orders == 1
    assert not {"1/0 file", "1/0 widget"} & set(lines(ledger))


async def test_an_answer_that_is_no_json_does_not_undo_the_call() -> None:
    """The same for a plugin's state that cannot be saved."""

    @tool("order", risk=Risk.WRITE, approval=False)
    def answers(call: ToolCall[Name]) -> object:
        return {"a": object()}

    @tool("order", risk=Risk.WRITE, approval=False, plugin=Counting)
    def counts(call: ToolCall[Name]) -> None:
        call.state = None

    for each, why in ((answers, "TypeError: a object is not JSON"), (counts, "ValidationError: 1 validation error")):
        registry, provider = site(SCRIPT, [each], [Counting()])
        await carry_on(registry)
        assert results_in(provider.asked[1])[0].startswith(f"{RAN} {why}")


def _file_of_text(call: ToolCall[Name]) -> None:
    call.file("receipt.txt", "paid", media_type="text/plain", summary="Paid.")  # type: ignore[arg-type]


SLIPS: dict[str, tuple[Callable[[ToolCall[Name]], object], str]] = {
    "a widget that is no widget": (lambda call: call.emit("widget", {"data": 5}), "The output 'widget' does not take"),
    "a kind that is none": (lambda call: call.emit("hologram", {}), "No output kind 'hologram' is registered."),
    "fields that are no JSON": (lambda call: call.emit("widget", {"data": object()}), "The output 'widget' is"),
    "a file of text": (_file_of_text, "The content of the file 'receipt.txt' must be bytes"),
    "a state that is refused": (lambda call: setattr(call.state, "added", "many"), "ValidationError: 1 "),
    "an output of bytes": (lambda call: b"\xff", "UnicodeDecodeError: "),
    "a number that is none": (lambda call: float("nan"), "TypeError: the result: nan is not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
async def test_a_slip_after_the_deed_is_not_taken_for_a_failure(name: str) -> None:
    """Whatever of a call's outputs is wrong: it ran, so the model is told that, and the old state stays (R15, S40)."""
    slip, why = SLIPS[name]
    orders: list[str] = []

    @tool("order", risk=Risk.WRITE, approval=False, plugin=Counting)
    def order(call: ToolCall[Name]) -> Any:
        orders.append(call.input.name)
        return slip(call)

    registry, provider = site(SCRIPT, [order], [Counting()])
    ledger = await carry_on(registry)
    assert orders == ["x"]
    assert results_in(provider.asked[1])[0].startswith(f"{RAN} {why}")
    assert [step.payload["value"]["added"] for step in ledger if step.type == "state"] == [0, 0]
    assert end_of(ledger)


class Line(BaseModel):
    item: str
    price: Decimal


@dataclass
class Receipt:
    lines: list[Line]
    day: date


class Receipts(Output):
    receipt: Receipt


async def test_whatever_pydantic_serialises_may_be_returned_and_shown() -> None:
    """Dates, decimals, dataclasses, tuples, lists of models: a result and an output's fields are JSON of them (S8)."""
    receipt = Receipt([Line(item="pen", price=Decimal("1.50"))], date(2026, 1, 2))
    register_output("receipts", Receipts)

    @tool("order", risk=Risk.WRITE, approval=False)
    def order(call: ToolCall[Name]) -> tuple[Receipt, set[int]]:
        call.emit("receipts", {"receipt": receipt})
        return receipt, {1}

    try:
        registry, _ = site(SCRIPT, [order])
        ledger = await carry_on(registry)
        said = {"lines": [{"item": "pen", "price": "1.50"}], "day": "2026-01-02"}
        result = View(ledger).result("1/0")
        assert result
        assert result.payload == {"output": [said, [1]]}
        shown = next(output for output in Outputs(ledger).in_order() if isinstance(output, Receipts))
        assert shown.receipt == receipt
    finally:
        unregister_output("receipts")


class Opaque:
    """Nothing that could be JSON."""


async def _returns_opaque(call: ToolCall[Name]) -> Opaque:
    return Opaque()


def test_what_cannot_be_json_is_refused_where_it_is_registered() -> None:
    """A tool that is said to return it, an output with such a field, and a kind that is no output."""
    with pytest.raises(RegistryError, match="order: what it is said to return cannot be JSON: "):
        tool("order")(_returns_opaque)

    class Held(Output):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        held: Opaque

    with pytest.raises(RegistryError, match="the output kind 'held' cannot be stored as JSON: "):
        register_output("held", Held)
    for other in (Opaque, Line, "Held"):
        with pytest.raises(RegistryError, match="the output kind 'held' needs a subclass of Output, not "):
            register_output("held", other)  # type: ignore[arg-type]


async def test_a_call_that_ran_while_the_database_went_away_asks_its_owner() -> None:
    """As after a crash: it is not done again by itself (R15)."""
    shop = Shop()
    ledger = await broken_off(shop)
    assert lines(ledger)[-1] == "1/0 action_start"
    waiting = await carry_on(site(SCRIPT, [shop.tool()])[0], ledger)
    assert (shop.orders, open_gates(waiting)) == (1, ["1/0/card1"])


async def test_what_may_run_twice_is_done_again_when_the_database_is_back() -> None:
    """Nobody is asked (R15)."""
    shop = Shop()
    registry, provider = site(SCRIPT, [shop.tool(idempotent=True)])
    await carry_on(registry, await broken_off(shop, idempotent=True))
    assert (shop.orders, results_in(provider.asked[-1])) == (2, ["ordered\n\n[file receipt.txt] Paid."])


class Labelled(Output):
    """An output whose field has another name in what tools give."""

    label: str = Field(validation_alias="name")


class Doubled(Output):
    """An output that is another one each time it is read."""

    words: str

    @field_validator("words")
    @classmethod
    def twice(cls, words: str) -> str:
        return words * 2


@pytest.mark.parametrize(
    ("kind", "model", "fields", "why"),
    [
        ("labelled", Labelled, {"name": "Oslo"}, None),
        ("doubled", Doubled, {"words": "ab"}, "The output 'doubled' would have other fields when it is read again."),
        ("file", None, {"file": 7, "name": "a", "summary": ""}, "are not emitted, but given with call.file(...)."),
        ("tool", None, {"tool": "pay"}, "Outputs of the kind 'tool' are not emitted."),
    ],
)
async def test_an_output_is_read_as_it_was_emitted_or_refused(kind: str, model: Any, fields: Any, why: str) -> None:
    """By the names that tools give; one that its model reads as another, and those that the engine makes, are not."""
    if model:
        register_output(kind, model)

    @tool("order", risk=Risk.WRITE, approval=False)
    def order(call: ToolCall[Name]) -> str:
        call.emit(kind, fields)
        return "ordered"

    try:
        registry, provider = site(SCRIPT, [order])
        ledger = await carry_on(registry)
        if why:
            assert why in results_in(provider.asked[1])[0]
        else:
            shown = next(output for output in Outputs(ledger).in_order() if isinstance(output, Labelled))
            assert load_output(shown.model_dump(mode="json")) == shown
            assert shown.label == "Oslo"
    finally:
        if model:
            unregister_output(kind)


class Itinerary(Output):
    to: str
    days: list[date]
    label: str = Field("", validation_alias="name")


class Cruise(Itinerary):
    """A model of its own, which is registered nowhere."""


async def test_a_typed_output_is_shown_by_its_class() -> None:
    """Its kind was said once, when it was registered; what is shown is what `emit` with the same fields would show."""
    register_output("itinerary", Itinerary)
    days = [date(2026, 1, 2), date(2026, 1, 3)]

    @tool("order", risk=Risk.WRITE, approval=False)
    def order(call: ToolCall[Name]) -> None:
        call.show(Itinerary(to="Oslo", days=days, label="Fjords"))
        call.emit("itinerary", {"to": "Oslo", "days": days, "name": "Fjords"})
        call.show(WidgetOutput(widget="map", data={"at": 1}, fallback="a map"))

    try:
        registry, _ = site(SCRIPT, [order])
        ledger = await carry_on(registry)
        first, second, third = [output for output in Outputs(ledger).in_order() if output.path == "1/0"][1:]
        place = {"path", "position", "created_at"}
        assert first.model_dump(exclude=place) == second.model_dump(exclude=place)
        assert (first.type, first.parent, third.type) == ("itinerary", "1/0", "widget")
        assert isinstance(first, Itinerary)
        assert (first.to, first.days, first.label) == ("Oslo", days, "Fjords")
    finally:
        unregister_output("itinerary")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (Cruise(to="Oslo", days=[]), "No output kind is registered for Cruise: register_output('a_name', Cruise)."),
        (FileOutput(file=7, name="a"), "Outputs of the kind 'file' are not emitted, but given with call.file(...)."),
        (ToolOutput(tool="pay"), "Outputs of the kind 'tool' are not emitted."),
        (WidgetOutput(widget="w", data={"a": object()}, fallback=""), "The output 'widget' is not JSON: "),
    ],
)
async def test_what_cannot_be_shown_is_told_and_the_call_is_not_repeated(output: Output, why: str) -> None:
    @tool("order", risk=Risk.WRITE, approval=False)
    def order(call: ToolCall[Name]) -> None:
        call.show(output)

    registry, provider = site(SCRIPT, [order])
    await carry_on(registry)
    assert results_in(provider.asked[1])[0].startswith(f"{RAN} {why}")


def test_a_model_says_one_kind() -> None:
    """Else nobody knew which of the two `call.show` means."""
    register_output("itinerary", Itinerary)
    try:
        with pytest.raises(
            RegistryError, match=r"Itinerary is the model of two kinds of output: 'itinerary' and 'trip'"
        ):
            register_output("trip", Itinerary)
    finally:
        unregister_output("itinerary")


async def test_a_number_that_nobody_could_read_is_not_kept() -> None:
    """Python reads no number of more than 4,300 digits: it would have broken every page with this turn."""

    @tool("order", risk=Risk.WRITE, approval=False)
    def order(call: ToolCall[Name]) -> int:
        return 10**5000

    registry, provider = site(SCRIPT, [order])
    await carry_on(registry)
    assert "a number of some 4,983 digits is not JSON here" in results_in(provider.asked[1])[0]


def _returns(annotation: Any) -> Callable[..., Any]:
    def function(call: ToolCall[Name]) -> Any:
        raise ToolError("No.")

    function.__annotations__["return"] = annotation
    return function


@pytest.mark.parametrize("annotation", [NoReturn, Never, LiteralString, Iterator[int], bytearray, dict[str, date]])
def test_whatever_can_be_written_may_be_said_to_be_returned(annotation: Any) -> None:
    tool("order")(_returns(annotation))
