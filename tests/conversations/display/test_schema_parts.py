"""What people type into each kind of field, and fields with fields inside: what is passed, and what is said if not."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator

from agents.engine.ledger import JSON
from agents.engine.schema import parse, problems, schema_of
from conversations.display.schema_form import FormField, SchemaForm
from tests.budget import examples
from tests.conversations.display.forms import INPUTS, PLAIN, Address, Card, Cash, Colour, Stop, Whole, sent

SCHEMA = schema_of(Whole)


def fields_of(form: SchemaForm) -> dict[str, FormField]:
    return {field.name: field for field in form.fields}


def inside(form: SchemaForm, name: str) -> dict[str, FormField]:
    """The fields inside this field, of the object that counts, or of the first row."""
    part = fields_of(form)[name].part
    assert part is not None
    return {field.name: field for field in cast(SchemaForm, part.forms[0]).fields}


def typed(model: type[BaseModel], /, **texts: str) -> SchemaForm:
    """The form of a new input, with these texts typed into its fields by name."""
    shown = SchemaForm(schema_of(model), {})
    keys = {field.name: field.key for field in shown.fields}
    return SchemaForm(schema_of(model), {}, sent(shown) | {keys[name]: text for name, text in texts.items()})


def one(annotation: Any, **more: Any) -> type[BaseModel]:
    """A model with one field, which is needed."""

    class One(BaseModel):
        it: annotation = Field(**more)

    return One


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Decimal, "12.50", "12.50"),
        (Decimal, "1000000000000000000000.01", "1000000000000000000000.01"),
        (date, "2028-02-29", "2028-02-29"),
        (timedelta, "90 minutes", "PT1H30M"),
        (timedelta, "1h 30m", "PT1H30M"),
        (timedelta, "2 days and 3 hours", "P2DT3H"),
        (timedelta, "1:05", "PT1H5M"),
        (timedelta, "P1W", "P7D"),
        (timedelta, "0 s", "PT0S"),
        (float | str, "a dozen", "a dozen"),
        (list[int], "1\n-2\n\n3", [1, -2, 3]),
        (list[Decimal], "1.50", ["1.50"]),
        (list[date], "2026-01-01", ["2026-01-01"]),
    ],
)
def test_what_is_typed_is_passed_as_its_type_wants_it(annotation: Any, text: str, value: JSON) -> None:
    form = typed(one(annotation), it=text)
    assert (form.payload(), form.errors) == ({"it": value}, {})
    assert problems(one(annotation), {"it": value}) == []


@pytest.mark.parametrize(
    ("annotation", "more", "text", "why"),
    [
        (Decimal, {"gt": 0}, "12,50", "Enter a number."),
        (Decimal, {"gt": 0}, "NaN", "Enter a number."),
        (Decimal, {"gt": 0}, "0", "Enter a number that is more than 0."),
        (date, {}, "2026-02-30", "such as 2026-11-30"),
        (date, {}, "tomorrow", "such as 2026-11-30"),
        (timedelta, {}, "soon", "such as 90 minutes"),
        (timedelta, {}, "5", "such as 90 minutes"),
        (timedelta, {}, "3 month", "such as 90 minutes"),
        (list[int], {}, "1\nmany", "Line 2: Enter a whole number."),
        (int, {"ge": 1, "le": 5}, "9", "Enter a number from 1 to 5."),
        (float, {"gt": 0}, "0", "Enter a number that is more than 0."),
        (str, {"min_length": 3}, "ab", "Enter at least 3 characters."),
        (str, {"max_length": 3}, "abcd", "Enter at most 3 characters; this has 4."),
        (list[str], {"max_length": 1}, "a\nb", "Give at most 1; there are 2."),
    ],
)
def test_what_cannot_be_passed_is_said_in_plain_words(
    annotation: Any, more: dict[str, Any], text: str, why: str
) -> None:
    form = typed(one(annotation, **more), it=text)
    form.payload()
    (said,) = form.errors["it"]
    assert why in said
    (field,) = form.fields
    assert field.text == text


@pytest.mark.parametrize(
    ("local", "zone", "value"),
    [
        ("2026-11-26T10:00", "Europe/Berlin", "2026-11-26T10:00:00+01:00"),
        ("2026-07-26T10:00", "Europe/Berlin", "2026-07-26T10:00:00+02:00"),
        ("2026-11-26T10:00", "utc", "2026-11-26T10:00:00+00:00"),
        ("2026-11-26T10:00:30", "+05:30", "2026-11-26T10:00:30+05:30"),
        ("2026-11-26T10:00", "", "2026-11-26T10:00:00"),
        ("2026-11-26 10:00", "UTC", "2026-11-26T10:00:00+00:00"),
        ("2026-11-26T10:00:00Z", "", "2026-11-26T10:00:00+00:00"),
    ],
)
def test_a_time_stands_beside_its_zone(local: str, zone: str, value: str) -> None:
    schema = schema_of(Whole)
    key = fields_of(SchemaForm(schema, {}))["at"].key
    form = SchemaForm(schema, {}, {key: local, f"{key}.zone": zone})
    assert form.payload()["at"] == value


@pytest.mark.parametrize(
    ("local", "zone", "why"),
    [
        ("2026-11-26T10:00", "Mars/Olympus", "There is no time zone 'Mars/Olympus'."),
        ("2026-11-26T10:00", "../../etc/passwd", "There is no time zone"),
        ("2026-11-26T10:00", "+99:00", "There is no time zone"),
        ("2026-03-29T02:30", "Europe/Berlin", "There is no such time in Europe/Berlin"),
        ("26 November", "UTC", "Enter a date and a time"),
    ],
)
def test_a_time_that_does_not_exist_is_refused(local: str, zone: str, why: str) -> None:
    key = fields_of(SchemaForm(SCHEMA, {}))["at"].key
    form = SchemaForm(SCHEMA, PLAIN, {key: local, f"{key}.zone": zone})
    form.payload()
    assert why in form.errors["at"][0]
    assert fields_of(form)["at"].zone == zone


def test_of_several_choices_those_that_are_ticked_are_passed() -> None:
    shown = SchemaForm(SCHEMA, PLAIN)
    key = fields_of(shown)["colours"].key
    posted = sent(shown)
    del posted[f"{key}.0"]
    posted |= {f"{key}.1": "1", f"{key}.2": "1"}
    assert SchemaForm(SCHEMA, PLAIN, posted).payload()["colours"] == ["green", "blue"]
    assert fields_of(shown)["extras"].words == "blue", "the default is ticked"
    extras = fields_of(shown)["extras"].key
    without = {name: text for name, text in posted.items() if not name.startswith(f"{extras}.")}
    assert SchemaForm(SCHEMA, PLAIN, without).payload()["extras"] == []


def test_one_of_many_choices_is_found_by_typing_it() -> None:
    key = fields_of(SchemaForm(SCHEMA, PLAIN))["city"].key
    for text, value in (("City 7", "City 7"), ("city 7", "City 7"), ("", None)):
        form = SchemaForm(SCHEMA, PLAIN, sent(SchemaForm(SCHEMA, PLAIN)) | {key: text})
        assert (form.payload().get("city"), form.errors) == (value, {})
    form = SchemaForm(SCHEMA, PLAIN, sent(SchemaForm(SCHEMA, PLAIN)) | {key: "City"})
    form.payload()
    assert "not one of the choices" in form.errors["city"][0]


# Groups


def test_errors_inside_stand_at_the_fields_inside() -> None:
    shown = SchemaForm(SCHEMA, PLAIN)
    inner = inside(shown, "address")
    form = SchemaForm(SCHEMA, PLAIN, sent(shown) | {inner["floor"].key: "100", inner["day"].key: "someday"})
    form.payload()
    assert form.errors["address.floor"] == ["Enter a number from -2 to 99."]
    again = fields_of(form)["address"]
    assert [name for name, field in inside(form, "address").items() if field.errors] == ["floor", "day"]
    assert again.wrong
    assert not again.errors
    assert form.others == []


def test_what_a_validator_says_of_a_field_inside_stands_there() -> None:
    wrong = {
        "address.city": ["no"],
        "pay.cash.amount": ["less"],
        "stops.0.city": ["no such city"],
        "stops.9.x": ["odd"],
    }
    form = SchemaForm(SCHEMA, PLAIN, sent(SchemaForm(SCHEMA, PLAIN)), errors=wrong)
    for name, inner, why in (("address", "city", "no"), ("pay", "amount", "less"), ("stops", "city", "no such city")):
        errors = {field.name: field.errors for field in inside(form, name).values() if field.errors}
        assert errors == {inner: [why]}


def test_a_default_of_its_own_is_not_replaced_by_that_of_its_model() -> None:
    """Others fill in the defaults of the model, and lose those of the instance."""
    form = SchemaForm(SCHEMA, PLAIN, sent(SchemaForm(SCHEMA, PLAIN)))
    payload = form.payload()
    assert "third" not in payload
    assert parse(Whole, payload).third.floor == 2
    changed = SchemaForm(SCHEMA, PLAIN, sent(form) | {inside(form, "third")["city"].key: "Rom"}).payload()
    assert changed["third"] == {"city": "Rom", "zip": None, "floor": 2, "day": None, "tags": []}


# Branches


def test_a_branch_is_chosen_and_its_fields_filled_in() -> None:
    shown = SchemaForm(SCHEMA, {})
    pay = fields_of(shown)["pay"]
    assert pay.part is not None
    assert [option.label for option in pay.part.options] == ["Card", "Cash"]  # type: ignore[attr-defined]
    posted = sent(shown)
    assert pay.key not in posted, "nobody has chosen"
    form = SchemaForm(SCHEMA, {}, posted)
    form.payload()
    assert form.errors["pay"] == ["Choose one."]
    number = pay.key.removeprefix("branches-")
    form = SchemaForm(SCHEMA, {}, posted | {pay.key: "0", f"{number}.0.line-0": "4711", f"{number}.1.number-0": "8"})
    assert form.payload()["pay"] == {"kind": "card", "number": "4711"}
    back = SchemaForm(SCHEMA, {}, sent(form) | {pay.key: "1"})
    assert back.payload()["pay"] == {"kind": "cash", "amount": "8"}, "what was typed into the other branch is not lost"


@pytest.mark.parametrize("odd", ["7", "-1", "x", "null", ""])
def test_a_branch_that_nobody_offered_is_refused(odd: str) -> None:
    key = fields_of(SchemaForm(SCHEMA, {}))["pay"].key
    form = SchemaForm(SCHEMA, {}, sent(SchemaForm(SCHEMA, {})) | {key: odd})
    assert "pay" not in form.payload()
    assert form.errors["pay"] == ["Choose one."]


def test_null_can_be_chosen_and_taken_back() -> None:
    key = fields_of(SchemaForm(SCHEMA, PLAIN))["second"].key
    given: dict[str, JSON] = PLAIN | {"second": {"city": "Ulm"}}
    assert "second" not in SchemaForm(SCHEMA, given, sent(SchemaForm(SCHEMA, given)) | {key: ""}).payload()

    class Needed(BaseModel):
        pay: Annotated[Card | Cash, Field(discriminator="kind")] | None

    shown = SchemaForm(schema_of(Needed), {})
    (field,) = shown.fields
    form = SchemaForm(schema_of(Needed), {}, {field.key: "null"})
    assert (form.payload(), form.errors) == ({"pay": None}, {})


def test_a_union_with_names_in_common_keeps_its_form() -> None:
    class A(BaseModel):
        name: str
        size: int

    class B(BaseModel):
        name: str
        colour: str

    model = one(A | B)
    given: dict[str, JSON] = {"it": {"name": "n", "colour": "c"}}
    form = SchemaForm(schema_of(model), given, sent(SchemaForm(schema_of(model), given)))
    assert form.payload() == given
    assert form.fields[0].kind == "branches"


@pytest.mark.parametrize("annotation", [date | Literal["never"], dict[str, int], tuple[int, str], int | str, Any])
def test_what_no_field_carries_is_json_with_its_schema_beside_it(annotation: Any) -> None:
    (field,) = SchemaForm(schema_of(one(annotation)), {}).fields
    assert field.kind == "json"
    assert bool(field.shape) == (annotation is not Any)


# Rows


def test_rows_are_added_and_removed_without_a_script() -> None:
    shown = SchemaForm(SCHEMA, PLAIN)
    stops = fields_of(shown)["stops"].part
    assert stops is not None
    number = stops.number
    posted = sent(shown)
    grown = SchemaForm(SCHEMA, PLAIN, posted | {f"add-{number}": "1"})
    assert grown.adds_rows
    posted = sent(grown) | {f"{number}.1.line-0": "Rom", f"{number}.1.number-1": "3"}
    form = SchemaForm(SCHEMA, PLAIN, posted)
    assert not form.adds_rows
    assert form.payload()["stops"] == [{"city": "Ulm"}, {"city": "Rom", "nights": 3}]
    less = SchemaForm(SCHEMA, PLAIN, posted | {f"remove-{number}": "0"})
    assert less.adds_rows
    assert SchemaForm(SCHEMA, PLAIN, sent(less)).payload()["stops"] == [{"city": "Rom", "nights": 3}]
    more = SchemaForm(SCHEMA, PLAIN, sent(less) | {f"add-{number}": "1"})
    assert SchemaForm(SCHEMA, PLAIN, sent(more)).payload()["stops"] == [{"city": "Rom", "nights": 3}], "a blank row"


def test_there_are_no_more_rows_than_may_be() -> None:
    class Few(BaseModel):
        stops: list[Card] = Field(min_length=2, max_length=3)

    schema = schema_of(Few)
    shown = SchemaForm(schema, {})
    rows = shown.fields[0].part
    assert rows is not None
    assert len(rows.rows) == 2  # type: ignore[attr-defined]
    form = SchemaForm(schema, {}, sent(shown))
    form.payload()
    assert form.errors == {"stops": ["Give at least 2; there are 0."]}
    full = SchemaForm(schema, {}, sent(SchemaForm(schema, {}, sent(shown) | {"add-0": "1"})))
    assert full.fields[0].part.full  # type: ignore[union-attr]


def test_bounds_may_be_any_numbers() -> None:
    """A schema that a program wrote by hand, such as that of a tool of another server."""
    schema = {"properties": {"a": {"type": "integer", "maximum": 10**400}, "b": {"type": "number", "minimum": 1e308}}}
    assert [field.hint[:4] for field in SchemaForm(schema, {}).fields] == ["10,0", "1e+3"]


def test_a_hundred_thousand_rows_are_not_made() -> None:
    form = SchemaForm(SCHEMA, PLAIN, {"rows-40": ",".join(map(str, range(100_000)))})
    assert all(len(field.part.forms) <= 200 for field in form.fields if field.part)


# Hints of the author


def test_hints_put_fields_in_order_and_beside_each_other() -> None:
    class Hinted(BaseModel):
        last: str = Field("", json_schema_extra={"x-order": 9})
        wide: str = Field("", json_schema_extra={"x-width": "half", "x-lines": 3})
        odd: str = Field("", json_schema_extra={"x-width": 7, "x-lines": "many", "x-order": "first"})

    fields = SchemaForm(schema_of(Hinted), {}).fields
    assert [field.name for field in fields] == ["wide", "odd", "last"]
    assert [(field.width, field.kind, field.rows) for field in fields] == [
        ("half", "text", 3), ("", "line", 1), ("", "line", 1),
    ]  # fmt: skip


# What a form must not lose


class Loose(BaseModel):
    tags: list[str]

    @field_validator("tags", mode="before")
    @classmethod
    def _also_in_one_line(cls, tags: Any) -> Any:
        return tags.split(",") if isinstance(tags, str) else tags


class Holder(BaseModel):
    title: str
    inner: Loose | None = None


def test_an_object_that_does_not_fit_its_schema_is_shown_as_json_and_kept() -> None:
    """Its validator takes more than the schema says: an edit of another field must not drop it."""
    given: dict[str, JSON] = {"title": "x", "inner": {"tags": "a,b"}}
    shown = SchemaForm(schema_of(Holder), given)
    assert fields_of(shown)["inner"].kind == "json"
    form = SchemaForm(schema_of(Holder), given, sent(shown) | {"line-0": "y"})
    assert form.payload() == given | {"title": "y"}


class Defaults(BaseModel):
    note: str | None = "dflt"
    text: str = "dflt"
    names: list[str] = ["p"]
    number: int | None = 5
    sure: bool | None = True
    when: date | None = date(2026, 1, 1)
    stops: list[Stop] = [Stop(city="Ulm")]
    home: Address | None = Address(city="Ulm")
    colours: list[Colour] = [Colour.RED]
    plain: str = ""
    none: str | None = None


EMPTY_VALUES: dict[str, JSON] = {
    "note": None, "text": "", "names": [], "number": None, "sure": None, "when": None, "stops": [], "home": None,
    "colours": [], "plain": "", "none": None,
}  # fmt: skip


@given(st.sets(st.sampled_from(sorted(EMPTY_VALUES))))
def test_a_form_that_is_sent_without_its_input_keeps_what_differs_from_the_defaults(names: set[str]) -> None:
    """As when a run is started again: null, the empty text and the empty list are not what is left out."""
    schema, wanted = schema_of(Defaults), {name: EMPTY_VALUES[name] for name in names}
    form = SchemaForm(schema, {}, sent(SchemaForm(schema, wanted, anew=True)))
    found = form.payload()
    assert form.errors == {}
    assert parse(Defaults, found) == parse(Defaults, wanted)


@settings(max_examples=examples(60))
@given(INPUTS)
def test_a_run_that_is_started_again_gets_the_same_input(payload: dict[str, JSON]) -> None:
    schema = schema_of(Whole)
    try:
        wanted = parse(Whole, payload)
    except ValidationError:
        return
    form = SchemaForm(schema, {}, sent(SchemaForm(schema, payload, anew=True)))
    found = form.payload()
    assert form.errors == {}
    again = parse(Whole, found)
    again.colours, wanted.colours = sorted(again.colours), sorted(wanted.colours)
    again.extras, wanted.extras = sorted(again.extras), sorted(wanted.extras)
    for each in (*again.stops, *wanted.stops, *(again.detours or ()), *(wanted.detours or ())):
        each.meals.sort()
    assert again == wanted


def test_steps_are_counted_from_the_least_number() -> None:
    (odd,) = SchemaForm(schema_of(one(int, ge=1, le=100, multiple_of=5)), {}).fields
    (even,) = SchemaForm(schema_of(one(int, ge=10, le=100, multiple_of=5)), {}).fields
    assert (odd.step, even.step) == (1, 5), "browsers count 1, 6, 11"


def test_a_secret_that_was_typed_must_be_typed_again() -> None:
    class Login(BaseModel):
        password: SecretStr

    (field,) = SchemaForm(schema_of(Login), {}, {"secret-0": "hunter2"}).fields
    assert (field.text, field.note) == ("", "Type this again: it is not kept on the page.")
