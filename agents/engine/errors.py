"""Errors of the engine, and what the loop does with each.

AgentError
├── ToolError          becomes the result of the call; the model, or the caller, sees it and continues
├── ProviderError      the attempt failed; it is retried if `retryable`, else the turn fails with `model_error`
├── ReplayMismatch     the ledger was written by a different program; the turn fails, the ledger stays
├── RegistryError      a name has two owners; the process does not start
├── Behind             others appended steps that the writer had not seen; it reads them and retries
└── UsedUp             what a decision would use up is used up; the rest is recorded, and people are asked
TimeoutError
└── Abandoned          an effect ignored its cancellation and may still be running
Halt (BaseException: no `except Exception` may swallow it)
├── Suspended          a person must decide first, or a time come; the turn continues later from its ledger
├── Cancelled          somebody stopped the turn; everything open is closed
├── Draining           this worker is shutting down; another continues where the ledger ends
├── Unrecorded         the journal did not take a record; the turn continues later from its ledger
└── Fenced             another worker owns the turn; this one must not write any more
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.engine.ledger import Step


class AgentError(Exception):
    """The base class of the errors that callers may catch."""


class ToolError(AgentError):
    """A call failed in a way its caller should see. `code` is for programs, `message` for people and models."""

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        self.code, self.message = str(code), str(message)  # a number would make the result one that did not fail


class NotKept(ToolError):
    """A call ran, but what it brought cannot be kept: it must not be taken for one that failed, and repeated."""

    def __init__(self, why: str) -> None:
        super().__init__(f"It ran, but its result could not be saved. {why}", code="not_kept")


class ProviderError(AgentError):
    """The model did not answer. `retryable`: the same request may succeed later, after `wait_seconds` if given."""

    def __init__(
        self, message: str, *, code: str = "model_error", retryable: bool = False, wait_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable, self.wait_seconds = code, message, retryable, wait_seconds


class ReplayMismatch(AgentError):
    """The ledger has a different policy at this path than the one being called."""


class RegistryError(AgentError):
    """A name is registered twice, is unknown, or something registered is invalid."""


class Behind(AgentError):
    """Others have written since the writer last read: `steps` of this turn, up to `last_id`. Nothing was written."""

    def __init__(self, steps: list[Step], last_id: int) -> None:
        super().__init__(f"{len(steps)} steps were appended by others")
        self.steps, self.last_id = steps, last_id


class UsedUp(AgentError):
    """What a decision in a record would use up is used up, such as `grant:3`. Nothing was written."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is used up")
        self.name = name


class Abandoned(TimeoutError):
    """An effect did not end when it was cancelled, and may still be running."""


class Halt(BaseException):
    """The turn stops here for now. Not an Exception, so that a policy's own handlers let it pass."""


class Suspended(Halt):
    """A person must decide first, or a time come. Everything so far is recorded, and no worker is blocked."""


class Cancelled(Halt):
    """Somebody stopped the turn."""


class Draining(Halt):
    """This worker is shutting down and starts nothing new."""


class Unrecorded(Halt):
    """The journal raised this `error` instead of taking a record. It may have kept it all the same."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Fenced(Halt):
    """Another worker owns the turn now."""
