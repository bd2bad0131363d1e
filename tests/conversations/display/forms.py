"""A browser's part in forms: what it sends of a form as it stands. And a model with a field of every kind."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from html.parser import HTMLParser
from typing import Annotated, Any, Literal

from django.template.loader import render_to_string
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, EmailStr, Field

from agents.engine.ledger import JSON
from conversations.display.schema_form import SchemaForm


class Sent(HTMLParser):
    """What a browser sends of a form as it stands: line breaks as CRLF, and in one line none; of boxes, the ticked."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.posted: dict[str, str] = {}
        self._area, self._text = "", ""
        self._choice = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "input" and (said.get("type") not in ("radio", "checkbox") or "checked" in said):
            self.posted[said["name"]] = _sanitised(said.get("type", "text"), said["value"])
        elif tag == "textarea":
            self._area, self._text = said["name"], ""
        elif tag == "select":
            self._choice = said["name"]
        elif tag == "option" and self._choice and (self._choice not in self.posted or "selected" in said):
            self.posted[self._choice] = said["value"]

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            lines = self._text.removeprefix("\n").replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self.posted[self._area] = "\r\n".join(lines)
        elif tag == "select":
            self._choice = ""


def _sanitised(type: str, value: str) -> str:
    """What a browser makes of the value of a control: it drops line breaks, and seconds that are none."""
    if type in ("time", "datetime-local"):
        if len(value.partition(".")[2]) > 3:
            return ""  # no time that it knows
        return value.removesuffix(":00") if value.count(":") == 2 else value
    plain = value.replace("\n", "").replace("\r", "")
    return plain.strip() if type in ("url", "email") else plain


def sent(form: SchemaForm) -> dict[str, str]:
    html = render_to_string("conversations/card/fields.html", {"form": form, "prefix": "x"})
    return Sent(html).posted


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Address(BaseModel):
    city: str
    zip: str | None = None
    floor: int = Field(0, ge=-2, le=99)
    day: date | None = None
    tags: list[str] = []


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str
    months: int = 1


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"
    amount: Decimal


class Circle(BaseModel):
    radius: float


class Square(BaseModel):
    side: float


class Stop(BaseModel):
    city: str
    nights: int = 1
    breakfast: bool = False
    meals: list[Literal["lunch", "dinner"]] = []


Pay = Annotated[Card | Cash, Field(discriminator="kind")]


class Whole(BaseModel):
    """A field of every kind, needed or not, and each that may be null."""

    text: str
    note: str | None = None
    essay: str = Field("", max_length=5000, json_schema_extra={"x-lines": 4})
    count: int
    stars: int = Field(3, ge=1, le=5)
    ratio: float = 0.5
    price: Decimal
    budget: Decimal | None = None
    sure: bool
    maybe: bool | None = None
    kind: Literal["a", "b\n", 3]
    colour: Colour = Colour.RED
    colours: list[Colour]
    meals: set[Literal["lunch", "dinner"]] | None = None
    extras: list[Colour] = [Colour.BLUE]
    city: Literal[tuple(f"City {number}" for number in range(40))] | None = None  # type: ignore[valid-type]
    born: date
    died: date | None = None
    starts: time = time(9, 30)
    at: datetime
    until: datetime | None = None
    takes: timedelta = timedelta(hours=3)
    waits: timedelta | None = None
    home: AnyUrl | None = None
    mail: EmailStr = ""
    tags: list[str]
    names: list[str] | None = None
    numbers: list[int] = []
    prices: list[Decimal] = []
    days: list[date] = []
    address: Address
    second: Address | None = None
    third: Address = Address(city="Ulm", floor=2)
    made: Address = Field(default_factory=lambda: Address(city="Ems"))
    pay: Pay
    tip: Pay | None = None
    form: Circle | Square = Circle(radius=1)
    stops: list[Stop]
    detours: list[Stop] | None = None
    usual: list[Stop] = [Stop(city="Ulm", nights=2)]
    either: int | str
    until_when: date | Literal["never"] = "never"
    pair: tuple[int, str] = (1, "a")
    many: dict[str, Address] = {}
    anything: Any = None


TEXTS = st.text(st.characters(codec=None), max_size=30) | st.text(
    " \t\n\r\x0b\x00\u2028ab\u202e\u200b\xa0'\"<&", max_size=12
)
NUMBERS = st.integers() | st.integers(10**300, 10**301)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
DATES = st.dates().map(str)
TIMES = st.times(timezones=st.none() | st.timezones()).map(lambda each: each.isoformat()) | st.just("10:00")
MOMENTS = st.datetimes(timezones=st.none() | st.timezones()).map(lambda each: each.isoformat()) | st.sampled_from(
    ["2026-11-26T10:00:00Z", "2026-11-26T10:00+01:00", "2026-11-26T10:00:00.5+01:00", "2026-10-25T02:30:00+01:00"]
)
DURATIONS = st.integers(0, 10**9).map(lambda each: f"PT{each}S") | st.sampled_from(
    ["PT0S", "PT3H", "P1DT2H3M4S", "P1Y", "PT1.5S", "-PT3H", "3 days", "P1W", "PT90M"]
)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False).map(str) | FLOATS | NUMBERS
COLOURS = st.sampled_from(["red", "green", "blue"])
MEALS = st.sampled_from(["lunch", "dinner"])
ADDRESSES = st.fixed_dictionaries(
    {"city": TEXTS},
    optional={
        "zip": TEXTS | st.none(),
        "floor": st.integers(-2, 99),
        "day": DATES | st.none(),
        "tags": st.lists(TEXTS, max_size=2),
    },
)
STOPS = st.fixed_dictionaries(
    {"city": TEXTS},
    optional={"nights": NUMBERS, "breakfast": st.booleans(), "meals": st.lists(MEALS, max_size=3)},
)
PAYS = st.fixed_dictionaries({"kind": st.just("card"), "number": TEXTS}, optional={"months": NUMBERS}) | (
    st.fixed_dictionaries({"kind": st.just("cash"), "amount": DECIMALS})
)
SHAPES = st.fixed_dictionaries({"radius": FLOATS}) | st.fixed_dictionaries({"side": FLOATS})
INPUTS: st.SearchStrategy[dict[str, JSON]] = st.fixed_dictionaries(
    {
        "text": TEXTS,
        "count": NUMBERS,
        "price": DECIMALS,
        "sure": st.booleans(),
        "kind": st.sampled_from(["a", "b\n", 3]),
        "colours": st.lists(COLOURS, max_size=4),
        "born": DATES,
        "at": MOMENTS,
        "tags": st.lists(TEXTS, max_size=4),
        "address": ADDRESSES,
        "pay": PAYS,
        "stops": st.lists(STOPS, max_size=3),
        "either": NUMBERS | TEXTS,
    },
    optional={
        "note": TEXTS | st.none(),
        "essay": TEXTS,
        "stars": st.integers(1, 5),
        "ratio": FLOATS,
        "budget": DECIMALS | st.none(),
        "maybe": st.booleans() | st.none(),
        "colour": COLOURS,
        "meals": st.lists(MEALS, max_size=3) | st.none(),
        "extras": st.lists(COLOURS, max_size=3),
        "city": st.integers(0, 39).map(lambda number: f"City {number}") | st.none(),
        "died": DATES | st.none(),
        "starts": TIMES,
        "until": MOMENTS | st.none(),
        "takes": DURATIONS,
        "waits": DURATIONS | st.none(),
        "home": st.sampled_from(["https://example.org/a b", "https://example.org/", " https://example.org"])
        | st.none(),
        "mail": st.sampled_from(["a@example.org", " a@example.org", "", "no mail"]),
        "names": st.lists(TEXTS, max_size=3) | st.none(),
        "numbers": st.lists(NUMBERS, max_size=3),
        "prices": st.lists(DECIMALS, max_size=3),
        "days": st.lists(DATES, max_size=3),
        "second": ADDRESSES | st.none(),
        "third": ADDRESSES,
        "made": ADDRESSES,
        "tip": PAYS | st.none(),
        "form": SHAPES,
        "detours": st.lists(STOPS, max_size=2) | st.none(),
        "usual": st.lists(STOPS, max_size=2),
        "until_when": DATES | st.just("never"),
        "pair": st.tuples(NUMBERS, TEXTS).map(list),
        "many": st.dictionaries(TEXTS, ADDRESSES, max_size=2),
        "anything": VALUES,
    },
)
"""Inputs that the schema allows, and some that a form must carry all the same."""
PLAIN: dict[str, JSON] = {
    "text": "a", "count": 1, "price": "12.50", "sure": True, "kind": "a", "colours": ["red"], "born": "2000-02-29",
    "at": "2026-11-26T10:00:00Z", "tags": ["x", "y"], "address": {"city": "Ulm"},
    "pay": {"kind": "cash", "amount": "1"}, "stops": [{"city": "Ulm"}], "either": 5,
}  # fmt: skip
