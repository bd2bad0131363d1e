"""An app whose workflows are run for each line of a table, and the tables of the tests."""

from __future__ import annotations

from typing import Any, Literal

from django.contrib.auth.models import User
from pydantic import BaseModel, Field, SecretStr

from conversations.models import Prompt
from tests.workflows import shop
from workflows import Flow, workflow
from workflows.batches.standing import Standing, standing_of
from workflows.batches.starting import start_batch
from workflows.definition import Workflow
from workflows.models import Batch


class Parcel(BaseModel):
    """A parcel. It fails for glass, and asks for gold."""

    item: str = Field(min_length=2, max_length=200)
    days: int = Field(default=1, ge=1, le=30, title="Days on the way")
    size: Literal["small", "large"] = "small"
    gift: bool = False
    labels: list[str] = Field(default_factory=list)
    map: dict[str, int] = Field(default_factory=dict)


class Key(BaseModel):
    door: str
    password: SecretStr | None = None


@workflow("shop.parcel", title="Send a parcel", category=shop.SHOP)
async def parcel(flow: Flow[Parcel]) -> str:
    """Sends a parcel."""
    item = flow.input.item
    if item == "glass":
        raise ValueError("It broke.")
    if item == "gold":
        await flow.tool("shell.run", command="open the safe")
    if item == "cheese":
        await flow.sleep(seconds=86_400)
    return f"Sent {item}."


@workflow("shop.key", title="Copy a key", category=shop.SHOP)
async def key(flow: Flow[Key]) -> None:
    """Copies a key."""


@workflow("shop.clean", title="Clean a workspace", category=shop.SHOP, workspace="required")
async def clean(flow: Flow[Parcel]) -> None:
    """Cleans a workspace."""


@workflow("shop.attended", title="Open the shop", category=shop.SHOP, schedulable=False)
async def attended(flow: Flow[Parcel]) -> None:
    """Opens the shop."""


ALL: tuple[Workflow, ...] = (parcel, key, clean, attended, shop.order, shop.fail)


def of(ann: User, *items: str, **more: Any) -> Batch:
    """Start a batch of these parcels."""
    return start_batch(parcel, ann, [{"item": item} for item in items], **more)


def stands(batch: Batch) -> list[str]:
    """Return the states of its lines."""
    return [line.state for line in now(batch).lines]


def now(batch: Batch) -> Standing:
    """Return how it stands."""
    return standing_of(Batch.objects.get(pk=batch.pk))


def runs(batch: Batch) -> list[Prompt]:
    """Return the runs that it has started, by line."""
    return [line.run for line in now(batch).lines if line.run]
