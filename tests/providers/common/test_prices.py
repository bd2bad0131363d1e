"""What an answer cost."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from agents.providers.common import prices
from agents.providers.common.prices import cost
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import Responses
from tests.providers.support import KEY, ask
from tests.wire.script import Reply
from tests.wire.server import WireServer

TOLD = {"input_tokens": 1000, "cached_tokens": 600, "output_tokens": 100}
GROQ = "https://api.groq.com/openai/v1"


async def test_a_known_model() -> None:
    """400 tokens at 1.25 dollars a million, 600 cached ones at 0.125, 100 written ones at 10: in billionths (S39)."""
    assert await cost(None, TOLD, "gpt-5-2025-08-07") == 500_000 + 75_000 + 1_000_000
    assert await cost("https://api.openai.com/v1", TOLD, "gpt-5") == 1_575_000
    assert await cost(None, {**TOLD, "cached_tokens": 0}, "gpt-5") == 2_250_000


async def test_the_first_name_that_is_known_counts() -> None:
    """Servers answer with a model's full name, or with one of their own."""
    assert await cost(None, TOLD, "our-alias", "gpt-5") == 1_575_000


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8001/v1", "http://localhost:11434/v1", "http://10.0.0.5/v1", "https://proxy.example"]
)
async def test_a_price_belongs_to_an_address(address: str) -> None:
    """The same open model is sold by one server and free on the next; a proxy has prices of its own."""
    assert await cost(GROQ, TOLD, "openai/gpt-oss-20b")
    assert await cost(address, TOLD, "openai/gpt-oss-20b") is None
    assert await cost(address, TOLD, "gpt-5") is None


@pytest.mark.parametrize("names", [("no-such-model",), ("",), ()])
async def test_an_unknown_model_has_no_price(names: tuple[str, ...]) -> None:
    """Not nothing: unknown."""
    assert await cost(None, TOLD, *names) is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [({}, None), ({"input_tokens": 10, "cached_tokens": 60, "output_tokens": 0}, 1250), ({"input_tokens": -1}, None)],
)
async def test_counts_that_make_no_sense_raise_nothing(usage: dict[str, int], expected: int | None) -> None:
    """A server that counts nothing, more cached tokens than tokens, or less than none."""
    assert await cost(None, usage, "gpt-5") == expected


async def test_nothing_is_fetched_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data is packed; a price is looked up in the worker's loop, for every answer."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    await cost(None, TOLD, "gpt-5")
    begun = time.process_time()
    for _ in range(100):
        await cost(None, TOLD, "gpt-5")
    assert time.process_time() - begun < 0.5


def test_the_data_is_loaded_once_for_all_loops() -> None:
    """In a thread: a loop that waits for it is not held up, and another may come after."""

    async def price() -> int | None:
        return await cost(None, TOLD, "gpt-5")

    assert [asyncio.run(price()) for _ in range(2)] == [1_575_000] * 2


async def test_an_answer_of_a_server_on_this_machine_has_no_price(wire: WireServer, provider: Responses) -> None:
    """As the demo model's."""
    wire.script = [Reply("Yes.", usage={"input_tokens": 1000, "output_tokens": 100})]
    assert (await ask(provider)).cost_nano_usd is None


async def test_an_answer_has_its_price(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its counts and its model's name, where the address has prices."""
    server = ModelServer(KEY, wire.url, models={"normal": "gpt-5"})
    monkeypatch.setattr(prices, "cost", lambda _, usage, *names: cost(None, usage, *names))
    provider = Responses(server)
    wire.script = [Reply("Yes.", usage=TOLD)]
    assert (await ask(provider)).cost_nano_usd == 1_575_000
    await provider.aclose()
