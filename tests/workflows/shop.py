"""An app's workflows on a test site, and how they are installed there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel, Field

from agents.categories import Category
from agents.engine.ledger import JSON
from conversations.prompts import startable
from tests.conversations.recorded import Site
from tests.conversations.travel import installed as with_policies
from workflows import Flow, discovery, workflow
from workflows.definition import Workflow

SHOP = Category("shop", "Shop", "box", 5)


class Order(BaseModel):
    item: str = Field(min_length=2)
    pieces: int = Field(default=1, ge=1, le=100)


class Ticket(BaseModel):
    number: str = Field(default_factory=lambda: uuid4().hex)
    notes: list[str] = Field(default_factory=list)


@workflow("shop.order", title="Order something", category=SHOP)
async def order(flow: Flow[Order]) -> dict[str, JSON]:
    """Orders pieces of an item, with an approval."""
    await flow.tool("shell.run", command=f"order {flow.input.pieces} {flow.input.item}")
    return {"ordered": flow.input.item}


@workflow("shop.ticket", title="Open a ticket", category=SHOP)
async def ticket(flow: Flow[Ticket]) -> None:
    """Opens a ticket, with an approval."""
    await flow.tool("shell.run", command=f"open {flow.input.number}")


@workflow("shop.fail", title="Fail", category=SHOP)
async def fail(flow: Flow[Any]) -> None:
    """Fails."""
    raise ValueError("The shop is closed.")


@workflow("shop.nested", title="Order two things", category=SHOP)
async def nested(flow: Flow[Any]) -> list[JSON]:
    """Orders two things, one after the other."""
    return [await flow.workflow("shop.order", item=item) for item in ("paper", "pens")]


@workflow("shop.tomorrow", title="Order tomorrow", category=SHOP)
async def tomorrow(flow: Flow[Order]) -> str:
    """Sleeps for a day, then orders."""
    await flow.sleep(seconds=86_400)
    return str(await flow.tool("shell.run", command=f"order {flow.input.item}"))


@workflow("shop.beside", title="Ask and sleep", category=SHOP)
async def beside(flow: Flow[Any]) -> list[JSON]:
    """Asks a question, and sleeps for one hour and for two, all side by side."""
    hour = flow.sleep(seconds=3600, key="hour")
    return await flow.gather(flow.ask("Which one?", key="ask"), hour, flow.sleep(seconds=7200, key="hours"))


@workflow("shop.blink", title="Blink", category=SHOP)
async def blink(flow: Flow[Any]) -> None:
    """Sleeps for a moment."""
    await flow.sleep(seconds=0.2)


@workflow("shop.nap", title="Take a nap", category=SHOP)
async def nap(flow: Flow[Any]) -> None:
    """Sleeps for an hour."""
    await flow.sleep(seconds=3600)


@workflow("shop.meanwhile", title="Work while it sleeps", category=SHOP)
async def meanwhile(flow: Flow[Any]) -> str:
    """Sleeps for a week, beside work that asks a question and a workflow that takes a nap."""

    async def work() -> None:
        for key in ("one", "two"):
            await flow.tool("fx.read", a=1, key=key)
        await flow.ask("Go on?", key="ask")
        for key in ("three", "four"):
            await flow.tool("fx.read", a=1, key=key)

    await flow.gather(flow.sleep(seconds=7 * 86_400, key="week"), work(), flow.workflow("shop.nap", key="nap"))
    return "All done."


ALL = (order, ticket, fail, nested, tomorrow, beside, blink, nap, meanwhile)


@contextmanager
def installed(
    site: Site, monkeypatch: pytest.MonkeyPatch, *script: Any, workflows: tuple[Workflow, ...] = ALL
) -> Iterator[Any]:
    """Install these workflows on a test site, in place of those it has; the scripted model is yielded."""
    with registered(monkeypatch, *workflows):
        yield with_policies(site, monkeypatch, *script)


@contextmanager
def registered(monkeypatch: pytest.MonkeyPatch, *workflows: Workflow) -> Iterator[None]:
    """Let people start these workflows, in place of those that the site has. What runs them is up to the test."""
    monkeypatch.setattr(discovery, "installed", lambda: {each.name: each for each in workflows})
    for each in workflows:
        startable.register(each, each.registered)
    try:
        yield
    finally:
        for each in workflows:
            startable.unregister(each.policy_name)


def until(condition: Callable[[], object]) -> None:
    """Wait until this holds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
