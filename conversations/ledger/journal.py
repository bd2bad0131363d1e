"""The journal: the only writer of the ledger.

Hand-written SQL on Django's connection: measured at 0.2-0.3 ms a record against 1.4 ms through the ORM, which would
cost a round more than a whole bare client loop. Everything else in the project uses the ORM.

A record is one transaction. It locks the conversation's row by a compare-and-set of `seq`: a writer that has not seen
the last step gets `Behind`. A worker's record also checks its claim: a worker that lost its lease gets `Fenced`.
Nothing else writes steps or outputs; only `conversations.erasure.steps` removes content from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from agents.engine.closing import answer_usage
from agents.engine.errors import Behind, Fenced, UsedUp
from agents.engine.interfaces.journal import Record
from agents.engine.ledger import canonical
from conversations.database.busy import limit_waits
from conversations.database.changes import NUMBER
from conversations.database.hints import hint_changed, hint_workers
from conversations.database.pipeline import pipelined
from conversations.database.plans import repeated_cursor
from conversations.database.sql import claim_age, drop_drafts, drop_secrets, now
from conversations.ledger import rows
from conversations.ledger.place import LedgerPlace, chain_digest
from conversations.ledger.prompt_row import UNCHANGED, PromptStanding
from conversations.ledger.reading import read_steps
from conversations.ledger.redacted import sha256
from conversations.ledger.uses import give_back, use_up
from conversations.models import Conversation


@dataclass(eq=False)
class Entry:
    """A record that is to be appended at a place.

    `fence` is the number of the claim under which a worker writes; None for what people do. `drafted` are the paths
    whose drafts are deleted because the record has the complete text; at the turn's end, all its drafts are deleted,
    and the secrets that it was given.
    """

    place: LedgerPlace
    record: Record
    fence: int | None = None
    drafted: Sequence[str] = ()


class Refused(Exception):
    """This entry cannot be appended, because of this error. The transaction must be rolled back."""

    def __init__(self, entry: Entry, error: BaseException) -> None:
        super().__init__(entry, error)
        self.entry, self.error = entry, error


def append(place: LedgerPlace, record: Record, *, fence: int | None = None, drafted: Sequence[str] = ()) -> LedgerPlace:
    """Append a record in the open transaction; return the writer's position after it.

    Raises Behind if others appended since `place`, which is then moved to where they ended; Fenced if the claim has
    passed to another worker or its lease ran out; UsedUp if something that the record uses is used up; ValueError for a
    gap in the ids of the steps. After any of these, the caller's transaction must be rolled back.
    """
    try:
        [after] = append_all([Written(Entry(place, record, fence, drafted))])
    except Refused as refused:
        raise refused.error from None
    return after


def append_all(written: Sequence[Written], *, briefly: bool = False) -> list[LedgerPlace]:
    """Append records of several conversations in the open transaction; return the writers' positions after them.

    `briefly`: wait for locks no longer than LOCK_SECONDS. Raises Refused, with an error that `append` raises.
    """
    with ExitStack() as stack:
        cursors = [[stack.enter_context(repeated_cursor()) for _ in ("conversation", "prompt")] for _ in written]
        with pipelined():
            if briefly:
                limit_waits()
            for each, (of_conversation, of_prompt) in zip(written, cursors, strict=True):
                _advance_conversation(of_conversation, each)
                _write_prompt(of_prompt, each)
        for each, (of_conversation, of_prompt) in zip(written, cursors, strict=True):
            if of_conversation.rowcount == 0:
                raise Refused(each.entry, _behind(each.entry.place))
            if not (changes := of_prompt.fetchone()):
                why = f"prompt {each.entry.place.prompt} no longer belongs to this worker"
                raise Refused(each.entry, Fenced(why))
            each.changes = changes[0]
    _use_up([each.entry for each in written])
    with pipelined(), repeated_cursor() as cursor:
        _insert(cursor, written)
    for each in written:
        hint_changed(each.entry.place.conversation)
    if any(each.entry.fence is None or each.standing.ended for each in written):
        hint_workers()  # of what people did, or of a slot that is free for the next turn
    return [each.after for each in written]


class Written:
    """An entry as it is written: the rows of its record, and what its steps make of the prompt's row.

    Make it before the transaction: on SQLite, nobody else can write until that ends.
    """

    def __init__(self, entry: Entry) -> None:
        """Raises Refused for a gap in the ids of the steps."""
        self.entry, self.steps = entry, entry.record.steps
        self.head, self.rows = entry.place.head, list[tuple[Any, ...]]()
        self.standing = PromptStanding().after(self.steps)
        self.changes = 0  # how often people had changed what turns rely on, as its prompt was written
        for seq, step in enumerate(self.steps, entry.place.seq + 1):
            if step.id != seq:
                raise Refused(entry, ValueError(f"step {step.id} where {seq} is next"))
            payload = canonical(step.payload)
            self.head = chain_digest(self.head, step, entry.place.prompt, sha256(payload))
            self.rows.append(rows.step_row(entry.place, step, payload, self.head))
        used = ((step, answer_usage(step)) for step in self.steps)
        self.usage = [rows.usage_row(entry.place, step, tokens) for step, tokens in used if tokens is not None]
        self.outputs = [rows.output_row(entry.place, output) for output in entry.record.outputs]

    @property
    def after(self) -> LedgerPlace:
        """The writer's position after it."""
        place = self.entry.place
        return LedgerPlace(place.conversation, place.prompt, self.steps[-1].id, self.head, changes=self.changes)


def _use_up(entries: Sequence[Entry]) -> None:
    """Take what the records use, and give back what they give back, a record's uses first: it may give back the same.

    All in one order, so that no two transactions wait for each other.
    """
    taken = [(name, at, 0) for at, entry in enumerate(entries) for name in entry.record.uses]
    given = [(name, at, 1) for at, entry in enumerate(entries) for name in entry.record.gives_back]
    for name, at, gives in sorted(taken + given):
        try:
            (give_back if gives else use_up)(name)
        except UsedUp as error:
            raise Refused(entries[at], error) from None


def _insert(cursor: Any, written: Sequence[Written]) -> None:
    """Write what the records add, and delete what they replace."""
    snapshots = {name: text for each in written for name, text in each.entry.record.snapshots.items()}
    cursor.executemany(rows.INSERT_STEP, [row for each in written for row in each.rows])
    if usage := [row for each in written for row in each.usage]:
        cursor.executemany(rows.INSERT_USAGE, usage)
    for each in written:
        place, ended = each.entry.place, each.standing.ended
        if each.entry.drafted or ended:
            drop_drafts(cursor, place.conversation, place.prompt, None if ended else each.entry.drafted)
        if ended:
            drop_secrets(cursor, place.conversation, place.prompt)
    if outputs := [row for each in written for row in each.outputs]:
        cursor.executemany(rows.UPSERT_OUTPUT, outputs)
    if snapshots:  # last, and sorted: a transaction that waits for another's waits for nothing else
        cursor.executemany(rows.INSERT_SNAPSHOT, sorted(snapshots.items()))


def _advance_conversation(cursor: Any, written: Written) -> None:
    """Lock the conversation by advancing its `seq` from the writer's position. Free the slot if the turn ends."""
    place, last = written.entry.place, written.steps[-1]
    changes = ["seq = %s", "head = %s"]
    values: list[Any] = [last.id, written.head]
    if written.standing.state or written.entry.fence is None:
        # Not for each round: it is in indexes, all of which PostgreSQL would write anew.
        changes.append("updated_at = %s")
        values.append(rows.database_time(last.time))
    if written.standing.ended:
        changes.append("active_prompt_id = NULLIF(active_prompt_id, %s)")
        values.append(place.prompt)
    cursor.execute(
        f"UPDATE conversations_conversation SET {', '.join(changes)} WHERE id = %s AND seq = %s",
        [*values, place.conversation, place.seq],
    )


def _behind(place: LedgerPlace) -> Behind | Fenced:
    """Return Behind with the steps that the writer has not seen, up to where the conversation is now: none is missing.

    It needs no lock for that: the steps up to a `seq` are committed with it. Fenced if the conversation was erased.
    """
    found = Conversation.objects.filter(pk=place.conversation).values_list("seq", "head").first()
    if found is None:
        return Fenced(f"conversation {place.conversation} was erased")
    newer = read_steps(place.conversation, place.prompt, after=place.seq)
    place.seq, place.head = found
    return Behind([step for step in newer if step.id <= place.seq], place.seq)


def _write_prompt(cursor: Any, written: Written) -> None:
    """Write what the steps change in the prompt's row, if it belongs to this writer and the conversation was advanced.

    The statement returns how often people have changed what turns rely on.
    """
    standing, fence = written.standing, written.entry.fence
    changes = [f"{name} = {name} + %s" for name in standing.counts]
    values: list[Any] = list(standing.counts.values())
    if standing.state:
        changes += ["state = %s", "stop_reason = %s"]
        values += [standing.state, standing.stop_reason]
    if standing.wake_at != UNCHANGED:
        changes.append("wake_at = %s")
        values.append(standing.wake_at and rows.database_time(standing.wake_at))
    if standing.ended:
        changes.append("ended_at = %s")
        values.append(rows.database_time(written.steps[-1].time))
    if standing.releases:
        changes += [f"running_seconds = running_seconds + {claim_age()}", "lease_until = 0"]
    if standing.progress:
        changes.append("strikes = 0, outages = 0")
    # Rows are locked in one order, the conversation's first: a writer that is behind has not locked it, and so must not
    # hold this one. No other writer can have made the same head.
    advanced = "SELECT 1 FROM conversations_conversation c WHERE c.id = conversation_id AND c.head = %s"
    where = f"id = %s AND EXISTS ({advanced})"
    values += [written.entry.place.prompt, written.head]
    if fence is not None:
        where += f" AND fence = %s AND lease_until > {now()}"
        values.append(fence)
    statement = f"UPDATE conversations_prompt SET {', '.join(changes or ['fence = fence'])} WHERE {where}"
    cursor.execute(f"{statement} RETURNING {NUMBER}", values)
