"""Ledger files: a conversation's ledger as JSON lines, so that it can be checked without a database.

The first line has the format and version. Then come the prompts, the snapshots, the redactions and the steps, each as
it is stored. The last line holds the head of the chain and the SHA-256 of all lines before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from tempfile import SpooledTemporaryFile

from django.db import connection, transaction

from agents.engine.ledger import JSON, canonical
from conversations.ledger.prompt_row import PromptStanding
from conversations.ledger.redacted import KeptStep
from conversations.models import Conversation, Prompt, Redaction, Snapshot, Step
from conversations.models.step import snapshots_of

FORMAT, VERSION = "agentsite-ledger", 3
"""Version 2 added `left_sha256` to redactions, version 3 `pauses` to prompts."""
IN_MEMORY = 1 << 20
"""Bytes of a ledger that are held in memory. A longer one is written to a temporary file."""


def exported_ledger(conversation_id: int) -> Iterator[str]:
    """Yield the lines, all as of one moment. Raises Conversation.DoesNotExist. Not in a transaction on PostgreSQL.

    It blocks nobody. All lines are read before the first is yielded, so the database is not used meanwhile, however
    slowly the caller takes them, and even if it stops early.
    """
    digest = hashlib.sha256()
    steps = 0
    with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="ascii", newline="\n") as read:
        with _one_moment():
            conversation = Conversation.objects.get(pk=conversation_id)
            for line in _lines(conversation):
                text = canonical(line) + "\n"
                digest.update(text.encode())
                steps += "seq" in line
                read.write(text)
        read.seek(0)
        yield from read
    yield last_line(conversation.seq, conversation.head, steps, digest.hexdigest())


def last_line(seq: int, head: str, steps: int, sha256: str) -> str:
    """Return the last line: the head of the chain, the number of steps, and the SHA-256 of all lines before."""
    return canonical({"head": {"seq": seq, "digest": head}, "steps": steps, "sha256": sha256}) + "\n"


@contextmanager
def _one_moment() -> Iterator[None]:
    """Read everything from one snapshot of the database, without blocking writers."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                cursor.execute(
                    "SET LOCAL idle_in_transaction_session_timeout = 0"
                )  # writing a long ledger takes a while
                yield
            return
        cursor.execute("SAVEPOINT one_moment")  # not atomic(): that takes the write lock, which writers need
        try:
            yield
        finally:
            cursor.execute("RELEASE one_moment")


def _lines(conversation: Conversation) -> Iterator[dict[str, JSON]]:
    yield {"format": FORMAT, "version": VERSION, "conversation": conversation.pk, "owner": conversation.owner_id}
    for prompt in conversation.prompts.order_by("pk"):
        yield _prompt(prompt)
    yield from _snapshots(conversation)
    for row in Redaction.objects.filter(conversation=conversation).order_by("seq"):
        digests = {"sha256": row.sha256, "left_sha256": row.left_sha256}
        named = {"by": row.redacted_by, "reason": row.reason, "time": row.redacted_at.isoformat()}
        yield {"redaction": {"seq": row.seq} | digests | named}
    for step in Step.objects.filter(conversation=conversation).order_by("seq").iterator(chunk_size=500):
        yield asdict(KeptStep.of(step))


def _prompt(prompt: Prompt) -> dict[str, JSON]:
    totals = {name: getattr(prompt, name) for name in PromptStanding().columns()}
    return {"prompt": prompt.pk, "number": prompt.number, "continues": prompt.continues_id} | totals


def _snapshots(conversation: Conversation) -> Iterator[dict[str, JSON]]:
    for row in Snapshot.objects.filter(pk__in=snapshots_of(conversation)).order_by("pk"):
        yield {"snapshot": row.sha256, "text": row.text}
