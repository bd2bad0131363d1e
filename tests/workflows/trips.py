"""A site with a scripted model that reads descriptions, and the workflows whose forms it fills in."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from agents.engine.interfaces.provider import FINAL_ANSWER
from conversations.models import Prompt
from tests.conversations import travel
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import call, says
from tests.workflows import shop
from workflows import Flow, policies, workflow

RAN: list[Any] = []


class Nested(BaseModel):
    street: str
    number: int = 1


class Trip(BaseModel):
    """Where to go."""

    city: str = Field(max_length=40, description="The city, such as Rome.")
    nights: int = Field(default=2, ge=1, le=30)
    by: Literal["train", "plane"] = "train"
    breakfast: bool = False
    notes: str = ""
    extras: list[str] = []
    hotel: Nested | None = None
    code: SecretStr | None = Field(default=None, description="The code of your account.")

    @field_validator("notes")
    @classmethod
    def _is_calm(cls, notes: str) -> str:
        if "!" in notes:
            raise ValueError("write it calmly")
        return notes


class Wild(BaseModel):
    first: str
    second: str

    @model_validator(mode="before")
    @classmethod
    def _takes_it_for_granted(cls, data: dict[str, str]) -> dict[str, str]:
        return {**data, "second": data["second"]}


@workflow("trip.book", title="Book a trip", category=shop.SHOP)
async def book(flow: Flow[Trip]) -> str:
    """Books a trip, and pays for it."""
    RAN.append(flow.input)
    return flow.input.city


@workflow("trip.wild", title="Go wild", category=shop.SHOP)
async def wild(flow: Flow[Wild]) -> str:
    """Has a validator that raises what it likes."""
    return flow.input.first


@workflow("trip.none", title="Take no input", category=shop.SHOP)
async def none(flow: Flow[Any]) -> None:
    """Takes nothing."""


class Trips:
    """A site with a scripted model, and Ann, who describes what she wants."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site, self.monkeypatch = site, monkeypatch
        self.ann = person("ann")
        self.client = signed_in(self.ann)
        self.model = self.answers(says("Nothing."))

    def answers(self, *script: Any, policy: Any = policies.fill) -> Any:
        """Let the model say this, answer by answer."""
        self.model = travel.installed(self.site, self.monkeypatch, *script, policies=(policy, policies.reader))
        return self.model

    def finds(self, **values: Any) -> None:
        """Let the model find these values."""
        self.answers(says("Found.", call(FINAL_ANSWER, **values)))

    def asks(self, text: str = "A trip to Rome.", name: str = "trip.book", **fields: Any) -> Any:
        """Press the button, and return the answer."""
        return self.client.post(reverse("workflow-fill", args=[name]), {"key": "k", "description": text, **fields})

    def fills(self, text: str = "A trip to Rome.", name: str = "trip.book", **fields: Any) -> str:
        """Ask, let a worker work, and return the page with the form."""
        asked = self.asks(text, name, **fields)
        assert asked.status_code == 302, asked.content.decode()
        self.site.works()
        page = self.client.get(asked["Location"])
        assert page.status_code == 200
        return text_of(page)

    def asked(self) -> Prompt:
        """The turn that reads the description."""
        return Prompt.objects.get(policy="form.fill")


@pytest.fixture
def trips(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trips]:
    """The site, with its workflows."""
    RAN.clear()
    with shop.registered(monkeypatch, book, wild, none, shop.order):
        yield Trips(site, monkeypatch)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(response: Any) -> str:
    return " ".join(unescape(response.content.decode()).split())
