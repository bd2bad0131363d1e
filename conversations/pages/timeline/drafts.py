"""What is on its way: the text of a round that streams, and what a running command has said so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from conversations.display.faithful import visible
from conversations.models import Draft, Prompt
from conversations.pages.timeline.growing import GrowingText, Piece
from conversations.pages.versions import version

TAIL_MOST = 4_000
"""Characters of a command's output that are shown while it runs. All of it is in its result."""


def slug(path: str) -> str:
    """A path as a part of an element's id."""
    return re.sub(r"[^0-9A-Za-z]", "-", path)


def standing(prompts: Iterable[Prompt]) -> dict[int, dict[str, Draft]]:
    """The drafts of these prompts, by prompt and path."""
    found: dict[int, dict[str, Draft]] = {}
    for draft in Draft.objects.filter(prompt__in=[prompt.pk for prompt in prompts]).order_by("pk"):
        found.setdefault(draft.prompt_id, {})[draft.path] = draft
    return found


@dataclass(frozen=True)
class RunningCommand:
    """The end of what a running command has said; "" before it says something."""

    id: str
    text: str = ""
    size: int = 0

    @classmethod
    def of(cls, prompt: int, path: str, draft: Draft | None) -> RunningCommand:
        """That of the call at this path."""
        if draft is None:
            return cls(f"d-{prompt}-{slug(path)}")
        tail = draft.text[-TAIL_MOST:]
        if len(draft.text) > TAIL_MOST:
            tail = tail.partition("\n")[2] or tail
        return cls(f"d-{prompt}-{slug(path)}", tail, draft.size)

    @property
    def version(self) -> str:
        """How much it has said."""
        return str(self.size)

    @property
    def html(self) -> SafeString:
        """The text, with nothing hidden in it."""
        return visible(self.text)


@dataclass
class Prose:
    """The text of a round, in pieces. `era` is that of the draft: its text may begin anew."""

    id: str
    era: tuple[int, int]
    text: GrowingText = field(default_factory=GrowingText)

    @property
    def version(self) -> str:
        """That of all of it: what is finished is known by how much it is."""
        pieces = self.text.pieces
        return version(self.era, len(pieces), [piece.version for piece in pieces[-2:]])

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The ids and versions of the pieces."""
        return [(self.piece(n), piece.version) for n, piece in enumerate(self.text.pieces)]

    def piece(self, number: int) -> str:
        """The id of a piece."""
        return f"{self.id}-{number}"

    def since(self, has: Mapping[str, str]) -> tuple[int, list[tuple[str, Piece]]]:
        """The number of the first piece that is not held in its version, and the pieces from there on with their ids.

        `has` holds ids and versions.
        """
        pieces = self.text.pieces
        first = 0
        while first < len(pieces) and has.get(self.piece(first)) == pieces[first].version:
            first += 1
        return first, [(self.piece(n), pieces[n]) for n in range(first, len(pieces))]


def prose(draft: Draft, kept: dict[str, Prose]) -> Prose:
    """A draft as prose. That which is `kept` grows on, so that what is finished is not made again."""
    name, era = f"d-{draft.prompt_id}-{slug(draft.path)}", (draft.fence, draft.attempt)
    if name not in kept or kept[name].era != era:
        kept[name] = Prose(name, era)
    kept[name].text.grow(draft.text)
    return kept[name]
