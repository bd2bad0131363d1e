"""Claims: a worker's right to run a prompt. Each has a fence, one higher than the last, and a lease to be renewed.

Claiming and renewing are hand-written SQL, like the journal, which checks the claim with each record of a worker.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db import OperationalError, connection, transaction
from django.db.models import Case, Exists, F, Min, QuerySet, Value, When

from conversations.database.busy import brief_waits, is_locked, limit_waits
from conversations.database.changes import NUMBER
from conversations.database.pipeline import pipelined
from conversations.database.plans import repeated_cursor
from conversations.database.sql import Clock, Literal, drop_drafts, in_list, now
from conversations.models.killswitch import KillSwitch
from conversations.models.prompt import CLAIMABLE, Prompt, PromptQuerySet, State


@dataclass(frozen=True)
class Claim:
    """A prompt that this worker may run until the lease ends. The worker can renew it."""

    conversation: int
    prompt: int
    fence: int
    strikes: int
    at: float = field(default=0.0, compare=False)
    """When it was taken, or slightly before, by the monotonic clock of this process."""
    changes: int = field(default=0, compare=False)
    """How often people had changed what turns rely on, see `conversations.database.changes`."""


SUSPECT = 2
"""Workers lost at one step without progress before the turn is a suspect: few of those are tried at once."""
ALONE = 3
"""Workers lost at one step without progress before a suspect is tried with no other beside it."""
STRIKES = 6
"""Workers lost at one step without progress before the turn fails for good: three of them while it was tried alone."""
PLACES = 8
"""Suspects that one worker tries at once: of 20 turns, the third loss strikes less than half."""
PROVEN_SECONDS = 30.0
"""After so long without a loss, one of several suspects keeps no other back: a step may take minutes, and most crashes
come sooner."""
OUTAGES = 5
"""Outages of the database in a row without progress that are no fault of the turn at which they were noticed."""
LAPSED = 1.0
"""A lease that ran out long ago: nobody released it, so it is a lost worker's."""
STRUCK = "p.strikes + CASE WHEN p.lease_until > 0 THEN 1 ELSE 0 END"
"""SQL for the strikes of the prompt `p` once it is claimed: a lease that was never released is a lost worker."""


def _places(strikes: str) -> str:
    return f"CASE WHEN {strikes} < {ALONE} THEN 1 ELSE {PLACES} END"


APART = f"""({STRUCK} < {SUSPECT} OR {STRUCK} = {STRIKES} OR {_places(STRUCK)} + (
    SELECT COALESCE(SUM({_places("q.strikes")}), 0) FROM conversations_prompt q
    WHERE q.state IN {in_list(CLAIMABLE)} AND q.lease_until > {{now}} AND q.worker LIKE %s ESCAPE '!'
        AND (q.strikes >= {ALONE}
            OR q.strikes >= {SUSPECT} AND q.claimed_at > {{now}} - {PROVEN_SECONDS})) <= {PLACES})"""
"""SQL for whether the prompt `p`, which nobody holds, may be claimed alongside those that the workers of a host hold
(a parameter, see `_of_host`).

Whoever kills a worker strikes all turns that it held, and a busy machine loses workers for reasons of its own. So the
loss of a worker only makes suspects. Each host tries PLACES of them at once, whichever of its drains have them, since
what takes all memory takes all of its drains down; and the few that were lost even so one at a time, however long that
takes: then the next loss strikes one alone. Once a suspect makes progress, is released or is lost, the one with the
fewest strikes is next. A turn that takes its worker down fails after three tries alone; one that was there by chance
would have to be hit in each of its own. Its end only has to be recorded, so that waits for no other, unless a worker
was lost at that, too.
"""
ALLOWED = "NOT EXISTS (SELECT 1 FROM conversations_killswitch WHERE off_at IS NULL)"
"""SQL for whether turns may run at all, that is, whether the kill switch is off."""
_SUSPECTS = 0x5167_2A
"""The number of the lock on PostgreSQL under which suspects are claimed one by one: each claim sees the one before."""
_OLDEST = f"""
    SELECT p.id FROM conversations_prompt p JOIN conversations_conversation c ON c.id = p.conversation_id
    WHERE p.state IN {in_list(CLAIMABLE)} AND p.lease_until < {{now}} AND {ALLOWED} AND {APART}
      AND ({STRUCK} >= {SUSPECT} OR {{share}})
      AND (c.active_prompt_id = p.id OR (c.active_prompt_id IS NULL AND p.state = '{State.QUEUED}' AND NOT EXISTS (
          SELECT 1 FROM conversations_prompt q
          WHERE q.conversation_id = p.conversation_id AND q.state = '{State.QUEUED}' AND q.id < p.id)))
    ORDER BY CASE WHEN {STRUCK} < {SUSPECT} THEN {STRIKES} ELSE {STRUCK} END, p.id LIMIT %s"""


@dataclass(frozen=True)
class Share:
    """The prompts that are a drain's to take: each drain of a host has those whose id leaves its number as remainder.

    Suspects are for every drain, so that the one with the fewest strikes is next. `besides` are prompts of other drains
    that this one may take as well.
    """

    number: int = 0
    drains: int = 1
    besides: frozenset[int] = frozenset()

    def has(self, prompt: int) -> bool:
        """Whether this prompt is the drain's own."""
        return prompt % self.drains == self.number

    def sql(self) -> str:
        """Return SQL for whether the prompt `p` is one of these."""
        own = f"p.id %% {self.drains} = {self.number}" if self.drains > 1 else "TRUE"
        return f"({own} OR p.id IN ({', '.join(map(str, self.besides))}))" if self.besides else own


ALL = Share()
"""Every prompt."""


def claimable(most: int, worker: str = "", share: Share = ALL) -> list[int]:
    """Return at most `most` prompts that `worker`, or one that holds none, could claim now: suspects, then the oldest.

    Suspects that its host has claimed keep others back, so that they take PLACES at most.
    """
    with repeated_cursor() as cursor:
        cursor.execute(_OLDEST.format(now=now(), share=share.sql()), [_of_host(worker), most])
        return [row[0] for row in cursor.fetchall()]


def _of_host(worker: str) -> str:
    """Return the pattern for LIKE that the workers of this one's host have: their names end with their processes."""
    host, slash, _ = worker.rpartition("/")
    return re.sub("([!%_])", r"!\1", host) + "/%" if slash else worker


def claimed() -> PromptQuerySet:
    """Return the prompts that a worker claimed and did not release, in no order: SQLite would read all there are in it,
    rather than find these by the index on leases.
    """
    return Prompt.objects.filter(state__in=map(Literal, CLAIMABLE), lease_until__gt=0).order_by()


def held() -> PromptQuerySet:
    """Return those whose lease has not run out."""
    return claimed().filter(lease_until__gt=Clock())


def next_lapse() -> float:
    """Return the seconds until the first of all leases runs out; infinite if nobody holds one."""
    first = held().aggregate(left=Min("lease_until") - Clock())["left"]
    return math.inf if first is None else first


def claim(prompt: int, worker: str, lease_seconds: float) -> Claim | None:
    """Claim a prompt: increment its fence, take a lease, and take the conversation's slot if it is free.

    Returns None if another worker was faster, if a suspect has to wait for another one (see `APART`), and while the
    kill switch is on.

    A lost worker is a strike, and its running time counts up to the last renewal of its lease. Its drafts are deleted:
    this claim writes its own.
    """
    at = time.monotonic()
    lost = "CASE WHEN lease_until - %s > claimed_at THEN lease_until - %s - claimed_at ELSE 0 END"
    with transaction.atomic(), repeated_cursor() as slot, repeated_cursor() as taken:
        with pipelined():
            limit_waits()
            _one_suspect_at_a_time(prompt)
            slot.execute(
                "UPDATE conversations_conversation SET active_prompt_id = %s"
                " WHERE id = (SELECT conversation_id FROM conversations_prompt WHERE id = %s)"
                " AND (active_prompt_id IS NULL OR active_prompt_id = %s)",
                [prompt, prompt, prompt],
            )
            taken.execute(
                "UPDATE conversations_prompt AS p SET fence = fence + 1, worker = %s,"
                f" running_seconds = running_seconds + {lost},"
                f" strikes = {STRUCK},"
                f" claimed_at = {now()}, lease_until = {now()} + %s"
                f" WHERE id = %s AND state IN {in_list(CLAIMABLE)} AND lease_until < {now()} AND {ALLOWED}"
                f" AND {APART.format(now=now())}"
                f" RETURNING conversation_id, fence, strikes, {NUMBER}",
                [worker, lease_seconds, lease_seconds, lease_seconds, prompt, _of_host(worker)],
            )
        row = taken.fetchone()
        if slot.rowcount == 0 or row is None:
            transaction.set_rollback(True)
            return None
        conversation, fence, strikes, changes = row
        if fence > 1:
            drop_drafts(taken, conversation, prompt, None)
        return Claim(conversation, prompt, fence, strikes, at, changes)


def _one_suspect_at_a_time(prompt: int) -> None:
    """Let nobody else claim a suspect until the open transaction ends, if this is one. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        suspect = f"SELECT FROM conversations_prompt p WHERE p.id = %s AND {STRUCK} >= {SUSPECT}"
        with repeated_cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_xact_lock(%s) WHERE EXISTS ({suspect})", [_SUSPECTS, prompt])


def renew(claims: Iterable[Claim], lease_seconds: float) -> set[int]:
    """Renew these leases with one UPDATE; return the prompts whose leases were renewed.

    One that ran out is renewed, too, if nobody has claimed its prompt since; but not while the kill switch is on, which
    ends such turns. Rows that somebody else has locked are left out, so that the others do not wait for them. On
    PostgreSQL they are locked by conversation, as by records of several turns: neither waits for the other's.
    """
    pairs = [value for claim in claims for value in (claim.prompt, claim.fence)]
    if not pairs:
        return set()
    where = f"lease_until > 0 AND (lease_until > {now()} OR {ALLOWED}) AND {_these(pairs)}"
    sql = f"UPDATE conversations_prompt SET lease_until = {now()} + %s WHERE {where}"
    if connection.vendor != "postgresql":
        return _ids(f"{sql} RETURNING id", [lease_seconds, *pairs])
    lock = f"SELECT id FROM conversations_prompt WHERE {where} ORDER BY conversation_id FOR NO KEY UPDATE"
    try:
        with brief_waits():
            return _ids(f"{sql} AND id IN ({lock}) RETURNING id", [lease_seconds, *pairs, *pairs])
    except OperationalError as error:
        if not is_locked(error):
            raise
    return _ids(f"{sql} AND id IN ({lock} SKIP LOCKED) RETURNING id", [lease_seconds, *pairs, *pairs])


def still_claimed(claims: Iterable[Claim]) -> set[int]:
    """Return the prompts that nobody else has claimed since, and that were not released."""
    pairs = [value for claim in claims for value in (claim.prompt, claim.fence)]
    if not pairs:
        return set()
    return _ids(f"SELECT id FROM conversations_prompt WHERE lease_until > 0 AND {_these(pairs)}", pairs)


def _these(pairs: list[int]) -> str:
    return f"(id, fence) IN (VALUES {', '.join(['(%s, %s)'] * (len(pairs) // 2))})"


def _ids(sql: str, values: Sequence[float]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return {row[0] for row in cursor.fetchall()}


def take_up_again(claim: Claim, waited: float, lease_seconds: float) -> bool:
    """Renew a lease that may have run out while its worker waited, unless another one has the turn by now.

    The time it `waited`, in seconds, does not count as running time. Returns False if it was not renewed.
    """
    stopped = KillSwitch.objects.filter(off_at=None)
    with brief_waits():  # if the disk is still full, neither is done, and the time is not counted twice
        _held(claim).update(claimed_at=F("claimed_at") + waited)
        return bool(_held(claim).exclude(Exists(stopped)).update(lease_until=Clock() + lease_seconds))


def release(claim: Claim, *, outage: bool = False) -> None:
    """Release a prompt, so that any worker can claim it at once.

    `outage`: because the database was away. After OUTAGES in a row without progress, another is like a lost worker.
    """
    ran = Clock() - F("claimed_at")
    until = Case(When(outages__gte=OUTAGES, then=Value(LAPSED)), default=Value(0.0)) if outage else Value(0.0)
    with brief_waits():
        _held(claim).update(
            running_seconds=F("running_seconds") + ran, lease_until=until, outages=F("outages") + int(outage)
        )


def holders() -> set[str]:
    """Return the workers that hold leases now."""
    return set(held().values_list("worker", flat=True))


def lapse(worker: str) -> None:
    """End the leases of a worker that has died: others claim what it held at once, as after a lease that ran out."""
    ran = Clock() - F("claimed_at")
    held().filter(worker=worker).update(
        running_seconds=F("running_seconds") + ran, claimed_at=Clock(), lease_until=LAPSED
    )


def _held(claim: Claim) -> PromptQuerySet:
    return Prompt.objects.filter(pk=claim.prompt, fence=claim.fence, lease_until__gt=0)


def any_held(prompts: QuerySet[Prompt]) -> bool:
    """Whether a worker holds one of these prompts now."""
    return prompts.filter(lease_until__gt=Clock()).exists()
