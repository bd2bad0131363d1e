"""The patrol: ends what is under way with a key that is no longer good, within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from agents.passthrough.errors import Refused

SECONDS = 0.2
"""Between two rounds. An answer of `authenticate` may be 0.8 seconds old; together they are a second."""


class Ending(Protocol):
    """What can be ended."""

    def end(self, reason: Refused) -> None:
        """End it, for this reason."""
        ...


class Patrol:
    """Looks after what is under way, by the `Authorization` header that it was asked with."""

    def __init__(self, authenticate: Callable[[str], Awaitable[object]]) -> None:
        self._authenticate = authenticate
        self._under_way: dict[str, set[Ending]] = {}
        self._walking: asyncio.Task[None] | None = None

    def count(self, authorization: str | None = None) -> int:
        """Return how many are under way; by default of all."""
        if authorization is None:
            return sum(map(len, self._under_way.values()))
        return len(self._under_way.get(authorization, ()))

    @contextmanager
    def watching(self, authorization: str, one: Ending) -> Iterator[None]:
        """Look after one while the block runs."""
        self._under_way.setdefault(authorization, set()).add(one)
        if self._walking is None or self._walking.done():
            self._walking = asyncio.create_task(self._walk())
        try:
            yield
        finally:
            self._under_way[authorization].discard(one)
            if not self._under_way[authorization]:
                del self._under_way[authorization]

    async def _walk(self) -> None:
        while self._under_way:
            await asyncio.sleep(SECONDS)
            for authorization in list(self._under_way):
                try:
                    await self._authenticate(authorization)
                except Refused as refused:
                    if refused.status < 500:  # else nobody can tell now
                        for one in list(self._under_way.get(authorization, ())):
                            one.end(refused)
