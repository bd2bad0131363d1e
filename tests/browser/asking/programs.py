"""What is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from agents.engine import Context

CITIES = [
    "Amsterdam", "Athens", "Barcelona", "Berlin", "Bologna", "Brussels", "Copenhagen", "Dublin", "Florence", "Geneva",
    "Hamburg", "Helsinki", "Lisbon", "Lyon", "Madrid", "Marseille", "Milan", "Munich", "Naples", "Oslo", "Paris",
    "Porto", "Prague", "Rome", "Seville", "Stockholm", "Turin", "Vienna", "Warsaw", "Zurich",
]  # fmt: skip
ROUTES = [
    "By night train through Lyon: leaves at 19:07, arrives at 10:32 the next morning, one change",
    "By plane in the morning",
    "By plane in the evening, with a night at the airport because the last bus has left by then",
    "Not at all",
    "By bus \u202eyltcerid",
]
LONG = (
    "The invoice 2025-0847 of Kerr Printing was paid twice: on 2 September by the export, and on 3 September by hand. "
    "The supplier offers two ways out.\n\n"
    "They can send the money back, which takes up to ten working days and costs a fee of 14.50. Or they can put it "
    "against the next invoice, which is due on 1 October and is about as high.\n\n"
    "What should I tell them?"
)


class Trip(BaseModel):
    """Where should the team go, and for how long?"""

    city: str = Field(description="As it is called on the ticket.", max_length=40)
    nights: int = Field(ge=1, le=30)
    seat: Literal["aisle", "window"] = Field(title="Seat on the train")
    breakfast: bool
    stops: list[str] = Field([], description="Where to change trains, if it matters.")
    day: date | None = Field(None, title="First day", description="Such as 2026-12-24.")

    @field_validator("city")
    @classmethod
    def _served(cls, city: str) -> str:
        if city not in CITIES:
            raise ValueError(f"no train goes to {city}")
        return city


async def words(ctx: Context) -> str:
    return f"They are told: {await ctx.ask(LONG)}"


async def trip(ctx: Context) -> str:
    trip = await ctx.ask(Trip)
    return f"To {trip.city} for {trip.nights} nights."


async def few(ctx: Context) -> str:
    return f"Sent: {await ctx.ask('The letter is ready. Send it today?', choices=['Today', 'Tomorrow', 'Never'])}."


async def some(ctx: Context) -> str:
    return f"Booked: {await ctx.ask('Which way to Barcelona?', choices=ROUTES)}."


async def many(ctx: Context) -> str:
    return f"Chosen: {await ctx.ask('Which city?', choices=CITIES)}."


async def book(ctx: Context) -> str:
    went = await ctx.approve("Book it for 1,240.00 EUR?", details="4 people, 3 nights in Lisbon.\nHotel: 880.00 EUR")
    return "Booked." if went else "Not booked."


async def several(ctx: Context) -> str:
    said: list[Any] = await ctx.gather(
        ctx.ask("What is it called?", key="name"),
        ctx.ask("Which colour?", choices=["Red", "Green"], key="colour"),
        ctx.ask(Trip, key="trip"),
    )
    return f"{said[0]}, {said[1].lower()}, to {said[2].city}."


PROGRAMS: dict[str, Callable[[Context], Awaitable[str]]] = {
    "Settle the invoice.": words,
    "Plan a trip.": trip,
    "Send the letter.": few,
    "Book a way.": some,
    "Choose a city.": many,
    "Book the trip.": book,
    "Ask me everything.": several,
}
