"""Streaming text: what was added to drafts, read from the database without reading again what is known."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Case, F, IntegerField, Value, When
from django.db.models.functions import Substr

from agents.engine.paths import progress
from conversations.display.shapes.events import TextDelta
from conversations.models import Draft

Place = tuple[int, str]
"""The id of a prompt, and a path in it."""
Beginning = tuple[int, int]
"""Fence and attempt of a draft. They only grow; with another value the text starts again."""


class Delta(NamedTuple):
    """Text at `offset` of a draft, counted in Unicode code points. Offset 0 starts the text again."""

    prompt: int
    path: str
    beginning: Beginning
    offset: int
    text: str
    seq: int
    """The last step of its conversation when it was read. The text comes after that step, and none has ended it."""

    @property
    def type(self) -> str:
        """The type of its event."""
        return "text.delta"

    @property
    def place(self) -> Place:
        """The draft it belongs to."""
        return self.prompt, self.path

    @property
    def end(self) -> int:
        """The length of the draft including this text."""
        return self.offset + len(self.text)

    def event(self) -> str:
        """Return its event as JSON."""
        return TextDelta.read(self).text_value()


class Missed(Exception):
    """Something does not continue what the client has: it has to read from the database."""


class KnownText:
    """What a client was sent of one draft: how much, and a digest of it instead of the text itself."""

    def __init__(self, beginning: Beginning = (-1, -1)) -> None:
        self.beginning = beginning
        self.end = 0
        self._digest = hashlib.sha256()

    def add(self, text: str) -> None:
        """Record that this text was sent."""
        self.end += len(text)
        self._digest.update(text.encode())

    def begins(self, text: str) -> bool:
        """Whether what was sent is the beginning of this text."""
        return hashlib.sha256(text[: self.end].encode()).digest() == self._digest.digest()


class KnownDrafts:
    """What a client was sent of each draft. `present`: the last step when it connected; what is older is history."""

    def __init__(self, present: int) -> None:
        self._present = present
        self._known: dict[Place, KnownText] = {}

    def take(self, delta: Delta) -> Delta | None:
        """Record a delta. Returns what is new in it, or None. Raises Missed if text before it is missing."""
        known = self._known.get(delta.place, KnownText())
        if delta.beginning < known.beginning:
            return None
        if began := delta.beginning > known.beginning:
            known = KnownText(delta.beginning)
        if delta.offset > known.end:
            raise Missed
        if delta.end <= known.end and not began:
            return None
        new = delta._replace(offset=known.end, text=delta.text[known.end - delta.offset :])
        known.add(new.text)
        self._known[delta.place] = known
        return new

    def complete(self, prompt: int, path: str, text: str, seq: int) -> Delta | None:
        """Forget the draft of a text that step `seq` brings. Returns what the client lacks of it; None for nothing.

        All of it if the client was sent something else: the beginning of an attempt that failed, for example. Nothing
        of a text that was recorded before the client connected, unless it was sent some of it: it reads history.
        """
        known = self._known.pop((prompt, path), None if seq <= self._present else KnownText())
        if known is None:
            return None
        offset = known.end if known.begins(text) else 0
        if offset == known.end == len(text):
            return None
        return Delta(prompt, path, known.beginning, offset, text[offset:], seq)

    def forget(self, prompt: int) -> None:
        """Forget the drafts of a prompt that has ended."""
        self._known = {place: known for place, known in self._known.items() if place[0] != prompt}


class Growth:
    """Reads what was added to the drafts of some conversations since the last call."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, tuple[Beginning, int]]] = {}  # by conversation and the draft's primary key

    def read(self, conversations: Collection[int]) -> dict[int, list[Delta]]:
        """Return the deltas by conversation, if there are any. A draft that is new or has restarted comes whole."""
        found: dict[int, list[Delta]] = {}
        present: dict[int, dict[int, tuple[Beginning, int]]] = {conversation: {} for conversation in conversations}
        for row in self._grown(conversations):
            beginning = (row["fence"], row["attempt"])
            begun, end = self._known.get(row["conversation"], {}).get(row["pk"], (beginning, 0))
            offset = end if begun == beginning else 0
            delta = Delta(row["prompt"], row["path"], beginning, offset, row["new"], row["seq"])
            present[row["conversation"]][row["pk"]] = (beginning, delta.end)
            if delta.text or begun != beginning:
                found.setdefault(row["conversation"], []).append(delta)
        self._known |= present
        return found

    def _grown(self, conversations: Collection[int]) -> Iterable[Mapping[str, Any]]:
        known = [item for conversation in conversations for item in self._known.get(conversation, {}).items()]
        begins = Case(
            *(When(pk=pk, fence=fence, attempt=attempt, then=Value(end + 1)) for pk, ((fence, attempt), end) in known),
            default=Value(1),
            output_field=IntegerField(),
        )
        # How far a policy is comes as an output; its draft is for the site's own pages.
        texts = Draft.objects.exclude(path__endswith=progress(""))
        drafts = texts.filter(conversation__in=conversations).order_by("pk")
        rows = drafts.annotate(new=Substr("text", begins), seq=F("conversation__seq"))
        return rows.values("pk", "conversation", "prompt", "path", "fence", "attempt", "new", "seq")

    def keep(self, conversations: Collection[int]) -> None:
        """Forget all other conversations: nobody follows them any more."""
        self._known = {pk: known for pk, known in self._known.items() if pk in conversations}
