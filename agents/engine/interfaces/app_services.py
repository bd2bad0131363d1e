"""Services of apps: what tools, plugins and policies find by name, such as `call.services["mail"]`.

An app declares them in its `services.py`. A worker makes each at its first use, and closes it when it stops.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.engine.errors import RegistryError, ToolError
from agents.engine.threads import in_thread

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
"""How long closing one service may take: a worker that stops does not wait longer."""


@dataclass(frozen=True)
class Service:
    """A service of an app: its name, and the function that makes it."""

    name: str
    factory: Callable[[], object]

    @property
    def owner(self) -> str:
        """The module that defines it."""
        return self.factory.__module__


def service(name: str) -> Callable[[Callable[[], object]], Service]:
    """Decorator: make a service of a function without arguments that returns it.

    The function is called once in a worker, in whatever thread first asks for the service, and everything else that
    asks for one waits: it should return at once, and what it returns should connect when it is used. If that has a
    method `aclose` or else `close`, the worker calls it when it stops, and awaits it if it is async; a plain `close` is
    called in a thread. Raises RegistryError for an invalid name, and for a function that needs arguments, is async or
    yields.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", name):
        raise RegistryError(f"a service's name must be lower-case words joined by dots, not {name!r}")

    def declare(factory: Callable[[], object]) -> Service:
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(kind(factory) for kind in kinds):
            raise RegistryError(
                f"{name}: a service is made by a plain function that returns it: let it connect when it is used, and"
                " close in its method `aclose`"
            )
        try:
            inspect.signature(factory).bind()
        except TypeError as error:
            raise RegistryError(f"{name}: a service is made by a function without arguments: {error}") from error
        return Service(name, factory)

    return declare


class AppServices(Mapping[str, Any]):
    """The services of one worker, by name: each is made when it is first asked for. May be used from any thread."""

    def __init__(self, services: Iterable[Service] = ()) -> None:
        self._services = {service.name: service for service in services}
        self._made: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._closed = False

    def __getitem__(self, name: str) -> Any:
        """Return the service. Raises KeyError if there is none, ToolError once closed, and whatever its factory raises.

        A factory that raises is asked again the next time.
        """
        service = self._services[name]
        with self._lock:
            if self._closed:
                raise ToolError("The worker is stopping, and its services are closed.", code="unavailable")
            if name not in self._made:
                self._made[name] = service.factory()
            return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._services

    def __iter__(self) -> Iterator[str]:
        return iter(self._services)

    def __len__(self) -> int:
        return len(self._services)

    async def aclose(self) -> None:
        """Close those that were made, the last one first. What they raise is logged; each gets CLOSE_SECONDS."""
        with self._lock:
            made, self._made, self._closed = self._made, {}, True
        for name, value in reversed(made.items()):
            closing = asyncio.ensure_future(_close(value))
            done, _ = await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
            error: BaseException | None
            if not done:
                closing.cancel()
                error = TimeoutError()
            else:
                error = asyncio.CancelledError() if closing.cancelled() else closing.exception()
            if error:
                owner = self._services[name].owner
                logger.error("the service %r of %s could not be closed", name, owner, exc_info=error)


async def _close(value: Any) -> None:
    """Close a service. A plain `close` is called in a thread, which the worker does not wait for: it may block."""
    if callable(aclose := getattr(value, "aclose", None)):
        closing = aclose()
    elif not callable(close := getattr(value, "close", None)):
        return
    else:
        closing = close() if inspect.iscoroutinefunction(close) else await in_thread(close)
    if inspect.isawaitable(closing):
        await closing
