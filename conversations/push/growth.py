"""Text on its way: what drafts grew by, read from the database without reading again what is known."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Case, F, IntegerField, Value, When
from django.db.models.functions import Substr

from conversations.models import Draft

Place = tuple[int, str]
"""A prompt's id and a path in it."""
Beginning = tuple[int, int]
"""Fence and attempt: another one means that the text began anew. They only grow."""


class Delta(NamedTuple):
    """Text at `offset` of a draft, counted in Unicode code points; offset 0 begins anew."""

    prompt: int
    path: str
    beginning: Beginning
    offset: int
    text: str
    seq: int
    """The last step there was of its conversation when it was read: it follows all of them, and none has ended it."""

    @property
    def type(self) -> str:
        """The type of its event."""
        return "text.delta"

    @property
    def place(self) -> Place:
        """Which draft it belongs to."""
        return self.prompt, self.path

    @property
    def end(self) -> int:
        """How long the draft is with it."""
        return self.offset + len(self.text)

    def event(self) -> str:
        """The event that tells of it, as JSON."""
        told = {"type": self.type, "prompt": self.prompt, "path": self.path}
        return json.dumps(told | {"offset": self.offset, "text": self.text}, separators=(",", ":"))

    def __deepcopy__(self, memo: object) -> Delta:
        return self  # nothing in it changes: a channel layer copies what it hands on


class Known:
    """How far each draft is known to somebody."""

    def __init__(self) -> None:
        self._ends: dict[Place, tuple[Beginning, int]] = {}

    def take(self, delta: Delta) -> Delta | None:
        """What is new in it, now known; None for nothing. Raises Missed where text before it is unknown."""
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
        """The prompt ended: nothing of it is on its way."""
        self._ends = {place: known for place, known in self._ends.items() if place[0] != prompt}


class Missed(Exception):
    """Text that belongs before this was never given."""


class Growth:
    """Reads what the drafts of some conversations grew by since the last call."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, tuple[Beginning, int]]] = {}  # by conversation and the draft's row

    def read(self, conversations: Collection[int]) -> dict[int, list[Delta]]:
        """By conversation, where there is something. A draft not seen before, or begun anew, comes whole."""
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
        rows = Draft.objects.filter(conversation__in=conversations).order_by("pk")
        rows = rows.annotate(new=Substr("text", begins), seq=F("conversation__seq"))
        return rows.values("pk", "conversation", "prompt", "path", "fence", "attempt", "new", "seq")

    def keep(self, conversations: Collection[int]) -> None:
        """Forget all others: nobody follows them any more."""
        self._known = {pk: known for pk, known in self._known.items() if pk in conversations}
