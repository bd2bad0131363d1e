"""What becomes of a run if a person says no: it is completed, and its result says that nothing was done.

To say no is an answer, and no failure: nothing has to be mended or run again. A card that nobody answers in time still
fails the run, because nobody has decided.
"""

from __future__ import annotations

from agents.engine.decisions import DECISIONS, Decision
from agents.engine.errors import ToolError

REJECTED = DECISIONS[Decision.REJECT].state
"""The code of a call that a person rejected."""


def words_of(error: ToolError) -> str:
    """Return what the person said who rejected a call, as a sentence. Raises the error if it is any other one."""
    if error.code != REJECTED:
        raise error
    return error.message if error.message.endswith((".", "!", "?")) else f"{error.message}."
