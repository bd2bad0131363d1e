"""What the engine needs of the outside. The runner implements these; tests and `run()` use the plain ones here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agents.engine.errors import ToolError

if TYPE_CHECKING:
    from agents.engine.interfaces.attached import Attachment
    from agents.engine.outputs.kinds import Output

T = TypeVar("T")


@dataclass(frozen=True)
class PastTurn:
    """An earlier prompt of the conversation: what the person said (None: nobody did) and gave, and what came of it."""

    prompt: int
    input: str | None
    outputs: Sequence[Output]
    files: Sequence[Attachment] = ()


class Services(Protocol):
    """Handed to policies as `ctx.services` and to tools as `call.services`."""

    user: int
    """The id of the conversation's owner: a tool acts with that person's rights, never with the worker's."""
    prompt: int
    """The id of the prompt that runs."""
    unattended: bool
    """Nobody is there to answer a card: the turn was started by the system."""

    def now(self) -> datetime:
        """The time, with its zone. What depends on it is recorded, so a replay never asks again."""
        ...

    def workspace(self) -> Path:
        """The conversation's own folder, made on first use; raises ToolError where there is none."""
        ...

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """Store a file's content before the step that names it; returns its id.

        Raises ToolError where it cannot be kept. What else it raises breaks the turn's run off, to be taken up later.
        """
        ...

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """A piece of text that is on its way, for whoever is looking. Never the truth, may be lost.

        With a higher `attempt` the text at this path begins anew, even where the piece is "". From any thread.
        Raises TypeError for a piece that is no text.
        """
        ...

    def running_seconds(self) -> float:
        """How long this turn has run so far, over all its pauses; waiting for a person does not count."""
        ...

    def may_begin(self) -> bool:
        """Whether an effect may still begin: this worker's lease has time left.

        Asked last of all. A process that stood still since it recorded the start must not begin it beside another
        worker's card.
        """
        ...

    async def over_quota(self) -> str | None:
        """Why no model may be asked for this person now; None where one may (C19)."""
        ...

    async def history(self) -> Sequence[PastTurn]:
        """The finished prompts before this one, oldest first."""
        ...

    async def result_of(self, prompt: int, path: str) -> str:
        """All that a call of this conversation came to, as text: what a model reads of it may have been cut.

        The call is named by its prompt and path. Raises ToolError where there is no such result.
        """
        ...

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """What a blocking function comes to that reads the database, in the thread that owns the connection.

        It must be short: every turn of this worker waits for it.
        """
        ...


@dataclass
class PlainServices:
    """No site around: one user, no workspace, no history."""

    user: int = 0
    prompt: int = 0
    unattended: bool = False

    def now(self) -> datetime:
        """The time of this machine."""
        return datetime.now(UTC)

    def workspace(self) -> Path:
        """There is none."""
        raise ToolError("There is no workspace here.", code="unavailable")

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """There is no place for them."""
        raise ToolError("Files cannot be kept here.", code="unavailable")

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """Nobody is looking."""

    def running_seconds(self) -> float:
        """Nobody counts."""
        return 0.0

    def may_begin(self) -> bool:
        """There are no leases."""
        return True

    async def over_quota(self) -> str | None:
        """Nobody counts."""
        return None

    async def history(self) -> Sequence[PastTurn]:
        """There were none."""
        return ()

    async def result_of(self, prompt: int, path: str) -> str:
        """Nothing is kept."""
        raise ToolError("Results are not kept here.", code="unavailable")

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """Call it here."""
        return function(*args)
