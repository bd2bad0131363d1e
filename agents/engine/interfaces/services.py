"""Services: what the engine needs from the outside. PlainServices serve tests and `run()`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agents.engine.errors import ToolError

if TYPE_CHECKING:
    from agents.engine.interfaces.attached import Attachment, Quote
    from agents.engine.outputs.kinds import Output

T = TypeVar("T")


@dataclass(frozen=True)
class Space:
    """What a workspace may hold: so many bytes and files. `left`: the bytes that its owner may use in it now."""

    bytes: int = 4 * 2**30
    files: int = 100_000
    left: int | None = None

    @property
    def room(self) -> int:
        """The bytes that it may hold now."""
        return self.bytes if self.left is None else min(self.bytes, self.left)


@dataclass(frozen=True)
class EncodedTurn:
    """What an earlier prompt encodes to, which depends on the ids of the calls before it: ids must not repeat.

    `ids`: those it uses, `taken`: those it would use if no earlier call had them.
    """

    chunk: bytes
    ids: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()

    def fits(self, before: Set[str]) -> bool:
        """Whether the prompt encodes to this where the calls before it have these ids."""
        return self.taken <= before and self.ids.isdisjoint(before)


@dataclass(frozen=True)
class PastTurn:
    """An earlier prompt of the conversation: its text (None: nobody said anything), its attachments and its outputs.

    `quotes`: the texts that a client sent along with the message, as said before it.
    `program`: it was the run of a workflow. Of that a model is told what came of it, and not what it called.
    `continues`: it went on with a turn before it, so that nobody said anything new. `reminder`: what the trigger says
    that started it; None if none did.
    `encoded`: what it encodes to, if that was kept; then nothing else was read. `keep` keeps it for later turns.
    """

    prompt: int
    input: str | None
    outputs: Sequence[Output]
    files: Sequence[Attachment] = ()
    program: bool = False
    continues: bool = False
    quotes: Sequence[Quote] = ()
    reminder: str | None = None
    encoded: EncodedTurn | None = None
    keep: Callable[[EncodedTurn], object] = field(default=lambda encoded: None, compare=False, repr=False)


@dataclass(frozen=True)
class TriggerInWords:
    """A trigger, as an agent reads of it. `when`: its schedule in words; `state`: `on`, `paused`, `off` or `over`."""

    id: int
    text: str
    when: str
    state: str


class Triggers(Protocol):
    """The triggers of a turn's owner. All of them raise ToolError with the reason if they do nothing."""

    least_seconds: float
    """The shortest time between two firings of one."""

    async def create(self, schedule: Any, text: str, key: str) -> TriggerInWords:
        """Make one that reminds an agent of this text at the times of a schedule (`agents.plugins.triggers.schedule`).

        One that fires once does so in this conversation, others in one of their own. The same `key` makes one only.
        """
        ...

    async def list(self) -> Sequence[TriggerInWords]:
        """Return the owner's triggers, the newest first."""
        ...

    async def delete(self, id: int) -> TriggerInWords:
        """Delete one of the owner's, and return what it was."""
        ...


class Services(Protocol):
    """The services of a turn; the runner implements them. Policies get `ctx.services`, tools get `call.services`.

    What the methods do here is what PlainServices do: there is no site, so there is nothing to store, show or measure.
    """

    user: int
    """The id of the conversation's owner: a tool acts with that person's rights, never with the worker's."""
    prompt: int
    """The id of the running prompt."""
    unattended: bool
    """Nobody is there to answer a card, because the system started the turn."""
    zone: str = "UTC"
    """The name of the owner's time zone."""

    def __getitem__(self, name: str) -> Any:
        """Return the service of an app by its name, see `agents.service`. Raises ToolError with the names there are."""
        raise _no_service(name, ())

    def now(self) -> datetime:
        """Return the time, with its zone. What depends on it is recorded, so a replay never asks again."""
        return datetime.now(UTC)

    def secret(self, field: str) -> str:
        """Return the secret that the run was given in this field of its input. For the engine: it gives it to the tool.

        Raises ToolError `secret_missing` if it is gone: the site was restored, or has another key.
        """
        raise _no_secret(field)

    def workspace(self) -> Path:
        """Return the conversation's workspace, created on first use. Raises ToolError if there is none.

        Commands may have put links into it: agents.plugins.files.box reads and writes there without following one.
        """
        raise ToolError("There is no workspace here.", code="unavailable")

    def space(self) -> Space:
        """Return what the workspace may hold."""
        return Space()

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """Store a file's content before the step that names it, and return its id.

        Raises ToolError if it cannot be stored. Any other error aborts this run of the turn, which is retried later.
        """
        raise ToolError("Files cannot be kept here.", code="unavailable")

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """Show a piece of streaming text to whoever is watching. It is never the truth and may be lost.

        A higher `attempt` starts the text at this path over, even if the piece is "". May be called from any thread.
        Raises TypeError for a piece that is not text.
        """
        ...

    def running_seconds(self) -> float:
        """Return how long this turn has run so far, across all its pauses, without waiting for people."""
        return 0.0

    def may_begin(self) -> bool:
        """Whether an effect may still begin, because this worker's lease has time left.

        This is checked last: a process that froze after recording the start must not begin the effect while another
        worker is already asking what became of it.
        """
        return True

    async def over_quota(self) -> str | None:
        """Return why this person's quota forbids asking a model now; None if it does not (C19)."""
        return None

    async def may_start(self, policy: str) -> bool:
        """Whether the person who started this turn may start this policy, by the rights they have now."""
        return True

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        """Return the finished prompts before this one, oldest first.

        Not the newest `skip` of them, and of the rest the newest `most`; None: all. `encoding` names the way in which
        they will be encoded: what a prompt encodes to may have been kept under this name. Without one, all are read.
        """
        return ()

    async def tools_used(self) -> set[str]:
        """Return the names of the tools that the finished prompts before this one called."""
        return set()

    async def result_of(self, prompt: int, path: str) -> str:
        """Return the full result of a call of this conversation as text; what the model read may have been shortened.

        The call is identified by its prompt and path. Raises ToolError if there is no such result.
        """
        raise ToolError("Results are not kept here.", code="unavailable")

    @property
    def triggers(self) -> Triggers:
        """What makes turns start by themselves, for this owner. Raises ToolError if there is nothing that could."""
        raise ToolError("Nothing can start by itself here.", code="unavailable")

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """Call a blocking function that reads the database, in the thread that owns the connection.

        Returns its result. It must be quick: every turn of this worker waits for it.
        """
        return function(*args)

    async def settled(self, function: Callable[..., T], *args: Any) -> T:
        """As `look_up`, for what people change now and then and rounds ask for all the time.

        The site reads it once, and again after people have changed skills, blueprints, limits, who may use the site,
        who is in which group, or whether somebody has memories and they are on (`conversations.database.changes` counts
        that), but after no other change. The result is shared: do not alter it.
        """
        return await self.look_up(function, *args)


def _no_secret(field: str) -> ToolError:
    why = f"The secret {field!r} is not there any more. Nothing was done: start it again, and enter it anew."
    return ToolError(why, "secret_missing")


def _no_service(name: str, known: Iterable[str]) -> ToolError:
    return ToolError(f"There is no service {name!r}. There are: {', '.join(sorted(known)) or 'none'}.", "unavailable")


@dataclass
class PlainServices(Services):
    """Services without a site: one user, no workspace, no history, and of apps those that it is given."""

    user: int = 0
    prompt: int = 0
    unattended: bool = False
    began: float = field(default_factory=time.monotonic, compare=False, repr=False)
    services: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)

    def __getitem__(self, name: str) -> Any:
        """Return one of the given services. Raises ToolError with their names if there is no such one."""
        if name not in self.services:
            raise _no_service(name, self.services)
        return self.services[name]

    def secret(self, field: str) -> str:
        """Return one of the given secrets. Raises ToolError if there is no such one."""
        if field not in self.secrets:
            raise _no_secret(field)
        return self.secrets[field]

    def running_seconds(self) -> float:
        """Return the seconds since these services were made: a run without a site keeps no time across pauses."""
        return time.monotonic() - self.began

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """Do nothing: nobody is watching."""
