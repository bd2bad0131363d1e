"""Turns whose program asks people: by `ctx.ask` and `ctx.approve`, run by the worker's runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Literal

from django.contrib.auth.models import User
from pydantic import BaseModel, Field, field_validator

from agents.engine import Action, Context, PolicyRegistry, Step, action_result
from agents.engine.errors import ToolError
from conversations.models import Output, Prompt
from tests.conversations.recorded import Site, pending

Program = Callable[[Context], Awaitable[Any]]


class Trip(BaseModel):
    """Where should it go?

    Only the first paragraph is asked.
    """

    city: str = Field(description="As on the ticket.", max_length=20)
    nights: int = Field(ge=1, le=30)
    seat: Literal["aisle", "window"]
    breakfast: bool = Field(title="With breakfast?")
    stops: list[str] = []
    day: date | None = None
    note: str = ""

    @field_validator("city")
    @classmethod
    def _known(cls, city: str) -> str:
        """A rule that no schema says."""
        if city == "Nowhere":
            raise ValueError("there is no such city")
        return city


def plays(site: Site, program: Program) -> None:
    """From now on, turns run this program, and end with what it returns; a ToolError's code is a result too."""

    async def root(action: Action, ctx: Context) -> list[Step]:
        try:
            came = await program(ctx)
        except ToolError as error:
            came = {"error": error.code}
        return [action_result("program", came)]

    site.monkeypatch.setattr("agents.registry.policies", lambda: PolicyRegistry({"agent": root}))


def asked(site: Site, owner: User, *question: Any, **more: Any) -> tuple[Prompt, Output]:
    """A turn whose program asks this, and its gate."""

    async def program(ctx: Context) -> Any:
        said = await ctx.ask(*question, **more)
        return said.model_dump(mode="json") if isinstance(said, BaseModel) else said

    return waiting(site, owner, program)


def waiting(site: Site, owner: User, program: Program) -> tuple[Prompt, Output]:
    """A turn of this program that waits for a person, and the first gate."""
    prompt = site.starts(owner)
    plays(site, program)
    site.works()
    prompt.refresh_from_db()
    return prompt, pending(prompt)[0]


def outcome(site: Site, prompt: Prompt) -> Any:
    """Run the turn on, by a worker that knows nothing of it but its ledger; return what its program returned."""
    site.works()
    prompt.refresh_from_db()
    root = prompt.steps.filter(path="", type="action_result").last()
    return root.content["output"] if root else None


TRIP = {"city": "Lisbon", "nights": 3, "seat": "aisle", "breakfast": True}
