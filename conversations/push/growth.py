"""Streaming text: what was added to drafts, read from the database without reading again what is known."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Case, F, IntegerField, Value, When
from django.db.models.functions import Substr

from agents.engine.paths import progress
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
        event = {"type": self.type, "prompt": self.prompt, "path": self.path}
        return json.dumps(event | {"offset": self.offset, "text": self.text}, separators=(",", ":"))


class Missed(Exception):
    """Something does not continue what the client has: it has to read from the database."""


class KnownDrafts:
    """How much of each draft a client has."""

    def __init__(self) -> None:
        self._ends: dict[Place, tuple[Beginning, int]] = {}

    def take(self, delta: Delta) -> Delta | None:
        """Record a delta. Returns what is new in it, or None. Raises Missed if text before it is missing."""
        beginning, end = self._ends.get(delta.place, ((-1, -1), 0))
        if delta.beginning < beginning:
            return None
        if delta.beginning > beginning:
            end = 0
        if delta.offset > end:
            raise Missed
        if delta.end <= end and delta.beginning == beginning:
            return None
        self._ends[delta.place] = (delta.beginning, delta.end)
        return delta._replace(offset=end, text=delta.text[end - delta.offset :])

    def forget(self, prompt: int) -> None:
        """Forget the drafts of a prompt that has ended."""
        self._ends = {place: known for place, known in self._ends.items() if place[0] != prompt}


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
