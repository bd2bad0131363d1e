"""Drafts on the page: the text of a round that is streaming, and the output of a running command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conversations.display.rendering.place import Place
from conversations.models import Draft, Prompt
from conversations.pages.timeline.growing import GrowingText, Piece
from conversations.pages.versions import version

TAIL_MOST = 4_000
"""Characters of a command's output that are shown while it runs. The result has all of it."""


def draft_id(prompt: int, path: str) -> str:
    """Return the id of the element in which a draft is shown."""
    return f"d-{prompt}-{re.sub(r'[^0-9A-Za-z]', '-', path)}"


def drafts_of(prompts: Iterable[Prompt]) -> dict[int, dict[str, Draft]]:
    """Return the drafts of these prompts, by prompt and path."""
    found: dict[int, dict[str, Draft]] = {}
    for draft in Draft.objects.of(*prompts).order_by("pk"):
        found.setdefault(draft.prompt_id, {})[draft.path] = draft
    return found


@dataclass(frozen=True)
class RunningCommand:
    """The end of a running command's output; "" before there is any."""

    id: str
    text: str = ""
    size: int = 0

    @classmethod
    def of(cls, prompt: int, path: str, draft: Draft | None) -> RunningCommand:
        """Return the running command of the call at this path."""
        if draft is None:
            return cls(draft_id(prompt, path))
        tail = draft.text[-TAIL_MOST:]
        if len(draft.text) > TAIL_MOST:
            tail = tail.partition("\n")[2] or tail
        return cls(draft_id(prompt, path), tail, draft.size)

    @property
    def version(self) -> str:
        """The size of the output so far."""
        return str(self.size)


@dataclass
class Prose:
    """The text of a round, in pieces. If `era`, the draft's fence and attempt, changes, the text starts again."""

    id: str
    era: tuple[int, int]
    text: GrowingText

    @property
    def version(self) -> str:
        """The version of the whole text. Finished pieces never change, so their number identifies them."""
        pieces = self.text.pieces
        return version(self.era, len(pieces), [piece.version for piece in pieces[-2:]])

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The ids and versions of the pieces."""
        return [(self.piece(n), piece.version) for n, piece in enumerate(self.text.pieces)]

    def piece(self, number: int) -> str:
        """Return the id of a piece."""
        return f"{self.id}-{number}"

    def since(self, has: Mapping[str, str]) -> tuple[int, list[tuple[str, Piece]]]:
        """Return the number of the first piece that a page lacks, and the pieces from there on with their ids.

        `has` maps the ids that the page has to their versions.
        """
        pieces = self.text.pieces
        first = 0
        while first < len(pieces) and has.get(self.piece(first)) == pieces[first].version:
            first += 1
        return first, [(self.piece(n), pieces[n]) for n in range(first, len(pieces))]


def grow_prose(draft: Draft, kept: dict[str, Prose]) -> Prose:
    """Return a draft as prose. Prose in `kept` is extended, so that its finished pieces are not rendered again."""
    name, era = draft_id(draft.prompt_id, draft.path), (draft.fence, draft.attempt)
    if name not in kept or kept[name].era != era:
        kept[name] = Prose(name, era, GrowingText(Place.of_prompt(draft.prompt_id, draft.conversation_id)))
    kept[name].text.grow(draft.text)
    return kept[name]
