"""Services of apps: each is made once, when it is first asked for, and closed with its worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from agents.engine.errors import RegistryError, ToolError
from agents.engine.interfaces import app_services
from agents.engine.interfaces.app_services import AppServices, Service, service
from agents.engine.interfaces.services import PlainServices
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Risk, ToolCall, tool
from tests.engine.cast import Name, site
from tests.engine.support import call, carry_on, results_in, says


class Outbox:
    """A service that keeps what it is told."""

    def __init__(self, closed: list[str] | None = None, name: str = "") -> None:
        self.sent: list[str] = []
        self.closed, self.name = closed if closed is not None else [], name

    async def aclose(self) -> None:
        self.closed.append(self.name)


@tool("mail.send", risk=Risk.WRITE, approval=False)
async def send(call: ToolCall[Name]) -> int:
    """Send something."""
    call.services["mail"].sent.append(call.input.name)
    return len(call.services["mail"].sent)


@tool("mail.count", risk=Risk.READ)
def count(call: ToolCall) -> int:
    """How much was sent. Plain, so that it runs in a thread."""
    return len(call.services["mail"].sent)


async def test_tools_and_plugins_reach_a_service_by_its_name() -> None:
    class Telling(Plugin):
        name = "telling"

        async def prepare(self, round: Round) -> None:
            round.context.append(f"Sent: {round.services['mail'].sent}")

    outbox = Outbox()
    script = [says("", call("mail.send", name="a")), says("", call("mail.count")), says("Done.")]
    registry, provider = site(script, [send, count], [Telling()], prompt="")
    await carry_on(registry, services=PlainServices(user=1, services={"mail": outbox}))
    assert outbox.sent == ["a"]
    assert results_in(provider.asked[2]) == ["1", "1"]
    told = [request.system.rpartition("\n")[2] for request in provider.asked]
    assert told == ["Sent: []", "Sent: ['a']", "Sent: ['a']"]


async def test_one_that_is_not_there_is_named_with_those_that_are() -> None:
    registry, provider = site([says("", call("mail.send", name="a")), says("Done.")], [send])
    await carry_on(registry, services=PlainServices(services={"post": 1, "clock": 2}))
    assert results_in(provider.asked[1]) == ["Error (unavailable): There is no service 'mail'. There are: clock, post."]
    with pytest.raises(ToolError, match=r"There is no service 'mail'\. There are: none"):
        PlainServices()["mail"]


def test_it_is_made_once_when_it_is_first_asked_for_from_any_thread() -> None:
    made: list[str] = []
    both, inside = threading.Barrier(8), threading.Barrier(2)

    @service("mail")
    def mail() -> object:
        made.append(threading.current_thread().name)
        with suppress(threading.BrokenBarrierError):
            inside.wait(timeout=0.1)  # for a second thread, which must not come
        return Outbox()

    services = AppServices([mail])
    assert ("mail" in services, list(services), made) == (True, ["mail"], [])

    def ask(_: int) -> Any:
        both.wait(timeout=30)
        return services["mail"]

    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(ask, range(8)))
    assert (len(made), len(set(map(id, got)))) == (1, 1)


def test_a_factory_that_fails_is_asked_again() -> None:
    tries: list[int] = []

    @service("mail")
    def mail() -> object:
        tries.append(1)
        if len(tries) < 2:
            raise OSError("no route")
        return Outbox()

    services = AppServices([mail])
    with pytest.raises(OSError, match="no route"):
        services["mail"]
    assert services["mail"] is services["mail"]
    assert len(tries) == 2


class Plain(Outbox):
    aclose = None  # type: ignore[assignment]

    def close(self) -> None:
        self.closed.append(self.name)


class Broken(Outbox):
    async def aclose(self) -> None:
        raise OSError("gone already")


class Cancelled(Outbox):
    async def aclose(self) -> None:
        raise asyncio.CancelledError


class Blocking(Plain):
    def close(self) -> None:
        time.sleep(1)


class Stubborn(Outbox):
    async def aclose(self) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.closed:
                    raise


async def test_what_was_made_is_closed_the_last_one_first(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever closing one does, the others are closed, and the worker ends. What was never asked for is not made."""
    monkeypatch.setattr(app_services, "CLOSE_SECONDS", 0.02)
    closed: list[str] = []
    kinds = {"a": Outbox, "b": Plain, "c": Broken, "d": Stubborn, "e": Outbox, "f": Outbox}

    def making(name: str) -> Service:
        def make() -> object:
            return kinds[name](closed, name)

        return service(name)(make)

    services = AppServices(map(making, kinds))
    for name in "abcde":
        assert services[name].name == name
    no_close = AppServices([service("number")(lambda: 5)])
    assert no_close["number"] == 5
    await no_close.aclose()
    await services.aclose()
    assert closed == ["e", "b", "a"]
    assert [record.message for record in caplog.records] == [
        "the service 'd' of tests.engine.interfaces.test_app_services could not be closed",
        "the service 'c' of tests.engine.interfaces.test_app_services could not be closed",
    ]
    with pytest.raises(ToolError, match="its services are closed"):
        services["f"]


async def test_one_that_is_cancelled_or_blocks_keeps_nobody(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ended the closing of all others; the second took as long as it liked, and the loop stood still."""
    monkeypatch.setattr(app_services, "CLOSE_SECONDS", 0.1)
    closed: list[str] = []
    kinds = {"a": Outbox, "b": Cancelled, "c": Blocking}

    def making(name: str) -> Service:
        return service(name)(lambda: kinds[name](closed, name))

    services = AppServices(map(making, kinds))
    assert [services[name].name for name in kinds] == ["a", "b", "c"]
    began = time.monotonic()
    await services.aclose()
    assert time.monotonic() - began < 0.9
    assert closed == ["a"]
    told = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert told == [TimeoutError, asyncio.CancelledError]


async def _coroutine() -> object:
    return 1


def _generator() -> Iterator[object]:
    yield 1


async def _async_generator() -> AsyncIterator[object]:
    yield 1


def _needs(one: int) -> object:
    return one


@pytest.mark.parametrize(
    ("name", "factory", "told"),
    [
        ("mail", _coroutine, "mail: a service is made by a plain function that returns it"),
        ("mail", _generator, "mail: a service is made by a plain function that returns it"),
        ("mail", _async_generator, "mail: a service is made by a plain function that returns it"),
        ("mail", _needs, "mail: a service is made by a function without arguments: missing a required argument: 'one'"),
        ("Mail", lambda: 1, "a service's name must be lower-case words joined by dots, not 'Mail'"),
    ],
)
def test_what_makes_no_service_is_refused_where_it_is_declared(name: str, factory: Any, told: str) -> None:
    with pytest.raises(RegistryError, match=told):
        service(name)(factory)
