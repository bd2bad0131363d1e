"""Drafts: text of a streaming round or a running command, until its record brings the whole.

Many tiny pieces arrive, in the loop's thread or in a tool's. They are written every WRITE_SECONDS, those of all prompts
in one statement. A draft is never the truth: it may be lost, and no failure here stops a turn.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import Error, InterfaceError, OperationalError, connection

from agents.engine.ledger import valid_text
from agents.engine.paths import is_progress
from agents.engine.secrets import RunSecrets, hide, partial_secret_length
from conversations.database.busy import brief_waits, is_locked
from conversations.database.disk import report_if_full
from conversations.database.hints import hint_changed
from conversations.database.sql import now
from conversations.database.threads import Write
from conversations.ledger.claims import Claim

logger = logging.getLogger(__name__)

WRITE_SECONDS = 0.1
"""Time between two writes: text that grows ten times a second seems to flow."""
AGAIN_SECONDS = 1.0
"""Time to wait after a write that the database did not answer."""
LOCK_SECONDS = 0.05
"""How long a write waits for somebody else's lock: less than a record does, because a draft may come later."""
DRAFT_MOST = 200_000
"""Maximum length of a draft, in characters. The rest arrives with its record."""
ROWS_MOST = 1000
"""Drafts written by one statement; SQLite allows 32,766 parameters."""


class DraftRow(NamedTuple):
    """One write to a draft: the new piece, and the size of the whole draft with it, in characters."""

    prompt: int
    path: str
    attempt: int
    fence: int
    text: str
    size: int


@dataclass
class GrowingDraft:
    """One draft of a claim: how much of it is stored, and the pieces that are not stored yet.

    `held` is the end of the text, if it could be the beginning of a secret: it waits for the next piece.
    """

    attempt: int
    pieces: list[str] = field(default_factory=list)
    held: str = ""
    stored: int = 0
    room: int = DRAFT_MOST

    def add(self, text: str) -> None:
        """Add a piece, as far as there is room."""
        if piece := text[: self.room]:
            self.pieces.append(piece)
            self.room -= len(piece)

    def take(self) -> str:
        """Remove and return all pieces, as text that a database accepts and that reveals no secret."""
        text = hide(self.held + valid_text("".join(self.pieces)))
        shown = len(text) - partial_secret_length(text)
        self.pieces, self.held = [], text[shown:]
        return text[:shown]

    def take_whole(self) -> str:
        """Remove and return all pieces of what is no text but JSON, in which secrets were hidden before."""
        text, self.pieces = "".join(self.pieces), []
        return text

    def put_back(self, text: str) -> None:
        """Return text that could not be written: it becomes the first piece again."""
        self.pieces[:0] = [text, self.held]
        self.held = ""


class PromptDrafts:
    """The drafts of one claimed prompt. They reveal none of the `secrets` of its run."""

    def __init__(self, claim: Claim, lock: threading.Lock, secrets: RunSecrets) -> None:
        self.claim, self._secrets = claim, secrets
        self._lock = lock
        self._growing: dict[str, GrowingDraft] = {}
        self._stored: set[str] = set()
        self._closed: set[str] = set()

    def add(self, path: str, text: str, attempt: int) -> None:
        """Add a piece of text, from any thread: see agents.engine.interfaces.services.Services.draft."""
        if not isinstance(text, str):
            raise TypeError(f"a draft is text, not {type(text).__name__}")
        with self._lock:
            if path in self._closed:
                return  # its result is recorded: this is a tool's thread that outlived its call
            growing = self._growing.get(path)
            if growing is None or growing.attempt < attempt:
                # "" counts as a piece: it empties what an earlier attempt has stored.
                growing = self._growing[path] = GrowingDraft(attempt, [""] if path in self._stored else [])
            if growing.attempt == attempt:
                growing.add(text)

    def close(self, paths: Iterable[str]) -> list[str]:
        """Accept no more for these paths, whose results are about to be recorded; return those that may be stored."""
        with self._lock:
            self._closed.update(paths)
            for path in paths:
                self._growing.pop(path, None)
            return [path for path in paths if path in self._stored]

    @property
    def grown(self) -> bool:
        """Whether anything is new since the last time."""
        with self._lock:
            return any(growing.pieces for growing in self._growing.values())

    def take(self) -> list[tuple[GrowingDraft, DraftRow]]:
        """Remove and return what is new since the last time. The caller holds the lock."""
        grown = []
        for path, growing in self._growing.items():
            if growing.pieces:
                with self._secrets.hidden():  # it is written outside of the run
                    text = growing.take_whole() if is_progress(path) else growing.take()
                self._stored.add(path)
                size = growing.stored + len(text)
                grown.append(
                    (growing, DraftRow(self.claim.prompt, path, growing.attempt, self.claim.fence, text, size))
                )
        return grown


class Drafts:
    """The drafts of all prompts of one drain. `write` runs a function in the thread that owns the connection."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._of: dict[Claim, PromptDrafts] = {}
        self._claimed = asyncio.Event()  # while there are any

    def of(self, claim: Claim, secrets: RunSecrets | None = None) -> PromptDrafts:
        """Return the drafts of a claim, which are written from now on, without these secrets of its run."""
        self._claimed.set()
        return self._of.setdefault(claim, PromptDrafts(claim, self._lock, secrets or RunSecrets()))

    def forget(self, claim: Claim) -> None:
        """Write nothing more for a claim whose run has ended."""
        self._of.pop(claim, None)
        if not self._of:
            self._claimed.clear()

    async def keep_writing(self) -> None:
        """Write what is new, again and again, until cancelled."""
        while True:
            await self._claimed.wait()  # a drain without turns does nothing ten times a second
            try:
                answered = await self.write()
            except Exception:
                logger.exception("drafts could not be written; going on without them")
                answered = False
            await asyncio.sleep(WRITE_SECONDS if answered else AGAIN_SECONDS)

    async def write(self) -> bool:
        """Write what is new since the last time. Returns False if the database did not answer: then it is kept.

        What that is, the database's thread takes itself: a record that it writes first closes the drafts of its paths.
        """
        some, grown = list(self._of.values()), list[tuple[GrowingDraft, DraftRow]]()
        if not any(drafts.grown for drafts in some):
            return True
        try:
            left = await self._write(self._store_grown, some, grown)
        except (OperationalError, InterfaceError) as error:
            left = {drafts.claim.prompt for drafts in some}
            if not report_if_full(error):
                logger.warning("drafts could not be written; trying again", exc_info=True)
        except Error:
            logger.warning("the database refused drafts; they are dropped", exc_info=True)
            left = set()
        with self._lock:
            for growing, row in grown:
                if row.prompt in left:
                    growing.put_back(row.text)
                else:
                    growing.stored = row.size
        return not left

    def _store_grown(self, some: Sequence[PromptDrafts], grown: list[tuple[GrowingDraft, DraftRow]]) -> set[int]:
        """Store what is new in these drafts, with which `grown` is filled here; return what `store` does."""
        with self._lock:
            grown += [each for drafts in some for each in drafts.take()]
        return store([row for _, row in grown])


def store(rows: Sequence[DraftRow]) -> set[int]:
    """Append these pieces to their drafts, if their claims still hold; one transaction for each ROWS_MOST.

    Each piece has its own position in the text: writing it twice changes nothing, and one at 0 restarts the draft.
    Returns the prompts whose rows somebody else has locked: theirs are not written, and no other waits for them.
    """
    locked: set[int] = set()
    for first in range(0, len(rows), ROWS_MOST):
        some = rows[first : first + ROWS_MOST]
        try:
            with brief_waits(LOCK_SECONDS):
                _insert(some)
        except OperationalError as error:
            if not is_locked(error):
                raise
            if len(prompts := {row.prompt for row in some}) == 1:
                locked |= prompts
            else:
                locked.update(*(store([row for row in some if row.prompt == prompt]) for prompt in prompts))
    return locked


def _insert(rows: Sequence[DraftRow]) -> None:
    values = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(_sql(values), [value for row in rows for value in row])
        written = {conversation for (conversation,) in cursor.fetchall()}
    for conversation in written:
        hint_changed(conversation)


def _sql(values: str) -> str:
    return (
        f"WITH piece (prompt, path, attempt, fence, text, size) AS (VALUES {values})"
        " INSERT INTO conversations_draft (conversation_id, prompt_id, path, attempt, fence, text, size)"
        " SELECT p.conversation_id, p.id, piece.path, piece.attempt, piece.fence, piece.text, piece.size"
        " FROM piece JOIN conversations_prompt p ON p.id = piece.prompt AND p.fence = piece.fence"
        f" WHERE p.lease_until > {now()}"
        " ON CONFLICT (conversation_id, prompt_id, path)"
        " DO UPDATE SET attempt = excluded.attempt, fence = excluded.fence,"
        " text = substr(conversations_draft.text, 1, excluded.size - length(excluded.text)) || excluded.text,"
        " size = excluded.size RETURNING conversation_id"
    )
