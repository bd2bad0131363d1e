"""How a turn stands, in the words at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agents.engine.outputs import Output as Entry
from agents.engine.outputs import ToolOutput
from conversations.models import Prompt, State

if TYPE_CHECKING:
    from conversations.pages.timeline import Block

FAILURES = {
    "max_rounds": "It used all the rounds it was given.",
    "timeout": "It ran as long as it was allowed to.",
    "parse_failures": "The model's answers could not be read.",
    "model_error": "The model did not answer.",
    "internal_error": "Something in this site went wrong.",
    "crash_loop": "The worker was lost again and again at the same place.",
}
"""Why a turn failed, where the turn itself does not say."""


@dataclass(frozen=True)
class Status:
    """`kind` is queued, working, speaking, continuing, waiting, failed, cancelled or completed.

    `folded`: the number of the block of steps that says that the turn works, so that its end need not. `because` says
    why it failed, `kept` how many calls came to a result, which a failure does not undo. `may`: the reader may decide.
    `again`: one can go on from where it ended, if it is the last; `retry`: its message can be tried again.
    """

    kind: str
    since: datetime
    folded: int | None = None
    because: str = ""
    kept: int = 0
    rounds: int = 0
    tokens: int = 0
    may: bool = False
    again: bool = False
    retry: bool = False

    @property
    def words(self) -> str:
        """The number of tokens as people read it."""
        return f"{self.tokens:,}"

    @property
    def shown(self) -> bool:
        """Whether there is something to say."""
        return self.folded is None and self.kind != "speaking" and (self.kind != State.COMPLETED or self.rounds > 0)


def status_of(prompt: Prompt, entries: Sequence[Entry], blocks: Sequence[Block], because: str) -> Status:
    """How this prompt stands. `because`: what the turn itself says of its failure."""
    if prompt.ended:
        return Status(
            prompt.state,
            prompt.ended_at or prompt.created_at,
            because=(because or FAILURES.get(prompt.stop_reason, "It ended before it was done."))
            if prompt.state == State.FAILED
            else "",
            kept=sum(isinstance(entry, ToolOutput) and entry.result.type == "success" for entry in entries),
            rounds=prompt.rounds,
            tokens=prompt.input_tokens + prompt.output_tokens,
            again=prompt.state != State.COMPLETED and prompt.fence > 0,
            retry=prompt.state != State.COMPLETED and prompt.input is not None,
        )
    waiting = [block.card for block in blocks if block.card and block.card.pending]
    if waiting:
        return Status("waiting", prompt.created_at, may=any(card.may for card in waiting))
    if prompt.state == State.QUEUED:
        return Status("queued", prompt.created_at)
    if any(block.card and block.card.entry.result.type == "deferred" for block in blocks):
        return Status("continuing", prompt.created_at)
    kind = "speaking" if any(block.prose for block in blocks) else "working"
    return Status(kind, prompt.created_at, folded=_last_steps(blocks))


def _last_steps(blocks: Sequence[Block]) -> int | None:
    """The last block of steps, unless a decision came after it."""
    for number in range(len(blocks) - 1, -1, -1):
        if blocks[number].card:
            return None
        if blocks[number].steps:
            return number
    return None
