"""The caller: what the short way of calling (`short`) and of asking people (`asking`) needs of a policy's context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agents.engine.ledger import Step
from agents.engine.limits import Limits
from agents.engine.runtime.action import Action
from agents.engine.runtime.recorder import Recorder


class Caller(ABC):
    """A policy that is running, as a caller of others. `action` is what it was called with, `path` its own call."""

    action: Action
    path: str

    @property
    @abstractmethod
    def recorder(self) -> Recorder:
        """The turn's steps so far, and its services."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """The site's limits."""

    @abstractmethod
    def call(self, action: Action, *, key: str | None = None, hold: bool = False) -> Coroutine[Any, Any, list[Step]]:
        """Call a policy and return its steps. See Context.call."""

    @abstractmethod
    def take_path(self, key: str | None) -> str:
        """Return the path of the next call, by its key or its ordinal. Raises as `call` does."""

    @abstractmethod
    def call_at(
        self, path: str, action: Action, work: Callable[[], Awaitable[list[Step]]] | None = None
    ) -> Coroutine[Any, Any, list[Step]]:
        """Call a policy at this path, or do this work there, which is recorded together with its call."""
