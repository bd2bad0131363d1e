"""What the company's workflows call."""

from agents import Risk, ToolCall, tool
from tests.browser.screenshots.app.journeys import Booking


@tool("journey.book", risk=Risk.DESTRUCTIVE, title="Book a journey")
def book(call: ToolCall[Booking]) -> str:
    """Book rooms for a journey."""
    rooms = ", ".join(f"{stop.nights} in {stop.city}" for stop in call.input.stops)
    return f"Nights: {rooms}; from {call.input.starts}."
