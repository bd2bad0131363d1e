"""A change: what a call would do to a text, shown to a person before it runs."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict

from agents.engine.unseen import unseen_at

CHANGE_MOST = 200_000
"""The most characters on either side of a change that is shown and recorded: more than anybody reads."""
LINES_MOST = 3_000
"""The most lines on either side: if all of them changed, they take half a second to render, and 800 kB of HTML."""
SPELLED_MOST = 5_000
"""The most invisible characters on either side. Each is shown as a mark of 60 characters: 0.2 seconds to render."""


class Change(BaseModel):
    """A text before and after a call. `path` names it; `before` is None if it does not exist yet."""

    model_config = ConfigDict(frozen=True)

    path: str
    before: str | None
    after: str

    @cached_property
    def too_large(self) -> bool:
        """Whether the change is too large to be shown and recorded."""
        sides = (self.before or "", self.after)
        return any(
            len(side) > CHANGE_MOST or side.count("\n") > LINES_MOST or sum(1 for _ in unseen_at(side)) > SPELLED_MOST
            for side in sides
        )
