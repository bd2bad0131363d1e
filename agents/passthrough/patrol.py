"""The patrol: knows what is under way, and ends it within a second when its key is no longer good."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

from agents.passthrough.errors import Refused

SECONDS = 0.5
"""Between two rounds. What a round learns may be 0.4 seconds old (`Caller.authenticate`): together less than one."""

logger = logging.getLogger(__name__)


class Ending(Protocol):
    """What can be ended."""

    def end(self, reason: Refused) -> None:
        """End it, for this reason."""
        ...


class Patrol:
    """Looks after what is under way: of whom, and by which `Authorization` header."""

    def __init__(self, authenticate: Callable[[str], Awaitable[object]]) -> None:
        self._authenticate = authenticate
        self._under_way: dict[str, set[Ending]] = {}
        self._of: Counter[Hashable] = Counter()
        self._walking: asyncio.Task[None] | None = None

    def count(self) -> int:
        """Return how many are under way."""
        return self._of.total()

    def count_of(self, person: Hashable) -> int:
        """Return how many of a person's are, whichever key they use."""
        return self._of[person]

    @contextmanager
    def watching(self, person: Hashable, authorization: str, one: Ending) -> Iterator[None]:
        """Look after one while the block runs."""
        self._under_way.setdefault(authorization, set()).add(one)
        self._of[person] += 1
        if self._walking is None or self._walking.done():
            self._walking = asyncio.create_task(self._walk())
        try:
            yield
        finally:
            self._of[person] -= 1
            self._of += Counter()  # without those who have none
            self._under_way[authorization].discard(one)
            if not self._under_way[authorization]:
                del self._under_way[authorization]

    async def _walk(self) -> None:
        while self._under_way:
            await asyncio.sleep(SECONDS)
            await asyncio.gather(*map(self._look, list(self._under_way)))

    async def _look(self, authorization: str) -> None:
        try:
            await self._authenticate(authorization)
        except Refused as refused:
            if refused.status < 500:  # else nobody can tell now
                for one in list(self._under_way.get(authorization, ())):
                    one.end(refused)
        except Exception:  # a mistake of ours: the next rounds must look after everybody else
            logger.exception("cannot tell whether a key is still good")
