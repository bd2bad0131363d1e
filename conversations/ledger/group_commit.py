"""Group commit: records of several turns are committed in one transaction, since each commit waits for the disk.

While one transaction is committed, the records of other turns queue; the next transaction takes all of them. Each
record stays what it is: it is written whole or not at all, and its turn goes on once it is committed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import connection, transaction

from agents.engine.errors import Halt
from agents.engine.interfaces.journal import Record
from conversations.database.away import is_away
from conversations.database.busy import is_locked
from conversations.database.crashpoints import crashpoint
from conversations.database.threads import Write
from conversations.ledger.journal import Entry, Refused, Written, append_all
from conversations.ledger.place import LedgerPlace

TOGETHER_MOST = 50
"""Records of one transaction: others wait for its locks, on SQLite all who write, for about 0.3 ms a record."""


@dataclass
class PromptJournal:
    """The engine's journal for one claimed prompt. `commit` writes an entry, see `GroupCommit`.

    Before a record is written, `close_drafts` is called with the paths whose results it has: from then on, no draft may
    be written there. It returns the paths that have one. `before` is called before each record, and `after` with the
    record and the place after it once it is committed, both in the thread that owns the connection.
    """

    place: LedgerPlace
    fence: int
    commit: Callable[[WorkerEntry], Awaitable[None]] = field(repr=False)
    close_drafts: Callable[[Sequence[str]], Sequence[str]]
    before: Callable[[], object] = field(default=lambda: None, repr=False)
    after: Callable[[Record, LedgerPlace], object] = field(default=lambda record, place: None, repr=False)

    async def record(self, record: Record) -> None:
        """Write a record. Raises Behind, Fenced and UsedUp, as `append` does."""
        drafted = self.close_drafts([step.path for step in record.steps if step.type == "action_result"])
        crashpoint("before_record", record.steps)
        await self.commit(WorkerEntry(self.place, record, self.fence, drafted, journal=self))


@dataclass(eq=False)
class WorkerEntry(Entry):
    """An entry of a turn that a worker runs."""

    journal: PromptJournal = field(kw_only=True)

    def committed(self, place: LedgerPlace) -> None:
        """Note that it is in the ledger, which goes on at this place."""
        crashpoint("after_commit", self.record.steps)
        self.journal.place = place
        self.journal.after(self.record, place)


Waiting = tuple[WorkerEntry, asyncio.Future[None]]
"""An entry, and what is done once it is committed."""


class GroupCommit:
    """Commits the entries of a drain's turns. `write` runs a function in the thread that owns the connection."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: list[Waiting] = []
        self._asked = False  # whether the thread is yet to take what waits
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, entry: WorkerEntry) -> None:
        """Write an entry; return once it is committed. Raises what `append` does, and errors of the database."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append((entry, done))
            ask, self._asked = not self._asked, True
        if ask:  # in a task of its own: whoever asks first may be cancelled, and the others are not
            task = asyncio.create_task(self._ask())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await done

    async def _ask(self) -> None:
        left = True
        while left:
            group: list[Waiting] = []
            try:
                errors, left = await self._write(self._commit_next, group)
            except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait are told
                with self._lock:
                    if not group:  # it never came to the thread
                        group, self._waiting = self._waiting, []
                    self._asked = left = bool(self._waiting)
                errors = dict.fromkeys((entry for entry, _ in group), error)
            for entry, done in group:
                _settle(done, errors.get(entry))

    def _commit_next(self, group: list[Waiting]) -> tuple[dict[WorkerEntry, BaseException], bool]:
        """Commit the next `group`, which is filled here; return the errors, and whether others wait already."""
        with self._lock:
            of: dict[int, Waiting] = {}
            for each in self._waiting:
                if len(of) < TOGETHER_MOST:
                    of.setdefault(each[0].place.conversation, each)  # its second entry would not see the first
            group += of.values()
            self._waiting = [each for each in self._waiting if of.get(each[0].place.conversation) is not each]
            self._asked = left = bool(self._waiting)
        return commit([entry for entry, done in group if not done.cancelled()]), left


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def commit(entries: Iterable[WorkerEntry]) -> dict[WorkerEntry, BaseException]:
    """Commit entries of different conversations; return those that are not in the ledger, and why."""
    ready, errors = [], dict[WorkerEntry, BaseException]()
    for entry in entries:
        try:
            entry.journal.before()
        except (Halt, Exception) as error:  # noqa: BLE001 - it is that entry's
            errors[entry] = error
            if is_away(error):
                connection.close_if_unusable_or_obsolete()
        else:
            ready.append(entry)
    # Conversations are locked in one order, by all who lock several.
    return errors | _commit_together(sorted(ready, key=lambda entry: entry.place.conversation))


def _commit_together(entries: Sequence[WorkerEntry]) -> dict[WorkerEntry, BaseException]:
    """Commit what is ready. An entry that is refused is left out; whose error another is, shows when each is alone."""
    if not entries:
        return {}
    try:
        written = [Written(entry) for entry in entries]
        with transaction.atomic():
            places = append_all(written, briefly=True)
            for entry in entries:
                crashpoint("before_commit", entry.record.steps)
    except Refused as refused:
        others = [entry for entry in entries if entry is not refused.entry]
        return {entry: refused.error for entry in entries if entry is refused.entry} | _commit_together(others)
    except Exception as error:  # noqa: BLE001 - each entry gets its own
        away = is_away(error) and not is_locked(error)
        if away:
            connection.close_if_unusable_or_obsolete()
        if away or len(entries) == 1:
            return dict.fromkeys(entries, error)
        return {each: why for entry in entries for each, why in _commit_together([entry]).items()}
    for entry, place in zip(entries, places, strict=True):
        entry.committed(place)
    return {}
