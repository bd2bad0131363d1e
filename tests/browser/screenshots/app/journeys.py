"""Journeys: a form with fields of many kinds, a question with a form, and a call to approve that has rows."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AnyUrl, BaseModel, EmailStr, Field, SecretStr

HALF: dict[str, Any] = {"x-width": "half"}
THIRD: dict[str, Any] = {"x-width": "third"}


class Bag(StrEnum):
    """The colour of a bag."""

    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Address(BaseModel):
    """Where somebody lives."""

    city: str = Field(json_schema_extra=HALF)
    zip: str | None = Field(None, json_schema_extra=HALF)
    floor: int = Field(0, ge=-2, le=99)


class ByCard(BaseModel):
    kind: Literal["card"]
    number: str = Field(description="The sixteen digits on its front.")
    months: int = 1


class InCash(BaseModel):
    kind: Literal["cash"]
    amount: Decimal


class Stop(BaseModel):
    city: str = Field(json_schema_extra=HALF)
    nights: int = Field(1, ge=1, le=30, json_schema_extra=HALF)
    breakfast: bool = False
    meals: list[Literal["lunch", "dinner"]] = []


class Journey(BaseModel):
    title: str = Field(min_length=3, max_length=80, description="What it is called in the calendar.")
    reason: str = Field("", max_length=5_000, title="What it is for", json_schema_extra={"x-lines": 3})
    people: int = Field(2, ge=1, le=12, json_schema_extra=THIRD)
    price: Decimal = Field(gt=0, description="In euros.", json_schema_extra=THIRD)
    rebate: float = Field(0.5, json_schema_extra=THIRD)
    train: bool = Field(title="By train")
    quiet: bool | None = None
    bag: Bag = Bag.RED
    bags: list[Bag] = Field(min_length=1, title="Colours of the other bags")
    office: Literal[tuple(f"Office {number}" for number in range(1, 1_001))] | None = None  # type: ignore[valid-type]
    starts: date = Field(json_schema_extra=HALF)
    at: time = Field(time(9, 30), json_schema_extra=HALF)
    meets: datetime = Field(title="Meeting")
    takes: timedelta = timedelta(hours=3)
    site: AnyUrl | None = None
    mail: EmailStr | None = None
    tags: list[str] = []
    address: Address
    billing: Address | None = None
    pay: Annotated[ByCard | InCash, Field(discriminator="kind")]
    stops: list[Stop] = Field(min_length=1, max_length=50)
    limits: dict[str, int] = Field({}, description="How many of each there may be.")
    password: SecretStr | None = None


class Choose(BaseModel):
    """Which stops shall be booked, and when?"""

    stops: list[Stop]
    meets: datetime = Field(title="Meeting")
    bags: list[Bag] = []


class Booking(BaseModel):
    """What is booked."""

    stops: list[Stop]
    starts: date
    note: str = ""
