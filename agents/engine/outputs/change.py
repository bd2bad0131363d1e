"""What a call would change, as a person is shown it before it runs."""

from __future__ import annotations

import re
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from agents.engine.unseen import is_unseen

CHANGE_MOST = 200_000
"""Characters on either side of a change that is shown and recorded: more than anybody reads."""
LINES_MOST = 3_000
"""Lines of the same: all of them changed take half a second to draw, and 800 kB of HTML."""
SPELLED_MOST = 5_000
"""Characters of the same that nobody sees, so that a mark of 60 stands in their place: 0.2 seconds to draw."""

_OTHERS = re.compile(r"[^\x20-\x7e\n\t]")


class Change(BaseModel):
    """One text before and after a call. `path` names it; `before` is None where there is none yet."""

    model_config = ConfigDict(frozen=True)

    path: str
    before: str | None
    after: str

    @cached_property
    def too_large(self) -> bool:
        """Whether it is too much to be shown and recorded."""
        sides = (self.before or "", self.after)
        return any(
            len(side) > CHANGE_MOST
            or side.count("\n") > LINES_MOST
            or sum(map(is_unseen, _OTHERS.findall(side))) > SPELLED_MOST
            for side in sides
        )
