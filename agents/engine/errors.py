"""What the loop does with each error.

AgentError
├── ToolError          the call's result is this error; the model, or the caller, sees it and goes on
├── ProviderError      the attempt failed; asked again if `retryable`, else the turn fails with `model_error`
├── ReplayMismatch     the ledger was written by another program; the turn fails, the ledger stays
├── RegistryError      two owners of one name; the process does not start
└── Behind             others appended steps that the writer had not seen; it reads them and writes again
TimeoutError
└── Abandoned          what reaches outside goes on after its limit: it did not end when it was told to
Halt (BaseException: no `except Exception` may swallow it)
├── Suspended          a person must decide first; the turn goes on later from its ledger
├── Cancelled          somebody stopped the turn; what is open is closed
├── Draining           this worker is stopping; another takes the turn up where its ledger ends
└── Fenced             another worker owns the turn; this one writes nothing more
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.engine.ledger import Step


class AgentError(Exception):
    """The base of every error that a caller may catch."""


class ToolError(AgentError):
    """A call that failed in a way its caller should see. `code` is for programs, the message for whoever reads it."""

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        self.code, self.message = code, message


class ProviderError(AgentError):
    """The model did not answer. `retryable`: the same request may succeed later, after `wait_seconds` if given."""

    def __init__(
        self, message: str, *, code: str = "model_error", retryable: bool = False, wait_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable, self.wait_seconds = code, message, retryable, wait_seconds


class ReplayMismatch(AgentError):
    """The ledger holds another policy at this path than the one that is called now."""


class RegistryError(AgentError):
    """A name is registered twice, or not at all."""


class Behind(AgentError):
    """Others wrote since the writer last looked: `steps` of this turn, and `last_id` is taken. Nothing was written."""

    def __init__(self, steps: list[Step], last_id: int) -> None:
        super().__init__(f"{len(steps)} steps were appended by others")
        self.steps, self.last_id = steps, last_id


class Abandoned(TimeoutError):
    """What reaches outside goes on: it did not end when it was told to."""


class Halt(BaseException):
    """The turn goes no further now. Not an Exception, so that a policy's own handlers let it pass."""


class Suspended(Halt):
    """A person must decide first. Everything so far is recorded; no worker is held."""


class Cancelled(Halt):
    """Somebody stopped the turn."""


class Draining(Halt):
    """This worker is stopping and starts nothing more."""


class Fenced(Halt):
    """Another worker owns this turn now."""
