"""How a turn stands, in the words at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.kinds import ToolOutput
from conversations.models import Prompt, State
from conversations.usage.totals import Spent

if TYPE_CHECKING:
    from conversations.pages.timeline.turns import Block

FAILURES = {
    "max_rounds": "It used all the rounds it was given.",
    "timeout": "It ran as long as it was allowed to.",
    "quota": "The tokens of the last 24 hours are used up.",
    "parse_failures": "The model's answers could not be read.",
    "model_error": "The model did not answer.",
    "internal_error": "Something in this site went wrong.",
    "crash_loop": "The worker was lost again and again at the same place.",
}
"""Why a turn failed, where the turn itself does not say."""
ADVICE = {
    "max_rounds": "Going on gives it as many rounds again.",
    "timeout": "Going on gives it as much time again.",
    "quota": "It can go on once fewer were used in 24 hours; your account says how many there are.",
    "parse_failures": "Asking again may help; so may the other model tier.",
}
"""What can be done about it, where that is not plain from the buttons."""
GOES_ON = frozenset({"max_rounds", "timeout", "quota"})
"""What ends a turn that was doing well: it goes on rather than from the beginning."""


@dataclass(frozen=True)
class Status:
    """`kind` is queued, working, speaking, continuing, waiting, failed, cancelled or completed.

    `folded`: the number of the block of steps that says that the turn works, so that its end need not. `because` says
    why it failed, `advice` what to do, `kept` how many calls came to a result, which a failure does not undo. `may`:
    the reader may decide. If it is the last, `on`: one can go on from where it ended; `again`: its message can be asked
    again. `first` is the one of these that is the better. `spent` is known once it has ended.
    """

    kind: str
    since: datetime
    folded: int | None = None
    because: str = ""
    advice: str = ""
    kept: int = 0
    rounds: int = 0
    tokens: int = 0
    spent: Spent | None = None
    answered: bool = False
    may: bool = False
    on: bool = False
    again: bool = False
    first: str = ""

    @property
    def words(self) -> str:
        """The number of tokens as people read it."""
        return f"{self.tokens:,}"

    @property
    def shown(self) -> bool:
        """Whether there is something to say."""
        quiet = self.kind == State.COMPLETED and not (self.rounds or self.again)
        return self.folded is None and self.kind != "speaking" and not quiet


def status_of(
    prompt: Prompt, entries: Sequence[Entry], blocks: Sequence[Block], because: str = "", spent: Spent | None = None
) -> Status:
    """How this prompt stands. `because`: what the turn itself says of its failure."""
    if prompt.ended:
        return _ended(prompt, entries, because, spent)
    waiting = [block.card for block in blocks if block.card and block.card.pending]
    if waiting:
        return Status("waiting", prompt.created_at, may=any(card.allow for card in waiting))
    if prompt.state == State.QUEUED:
        return Status("queued", prompt.created_at)
    if any(block.card and block.card.entry.result.type == "deferred" for block in blocks):
        return Status("continuing", prompt.created_at)
    kind = "speaking" if any(block.prose for block in blocks) else "working"
    return Status(kind, prompt.created_at, folded=_last_steps(blocks))


def _ended(prompt: Prompt, entries: Sequence[Entry], because: str, spent: Spent | None) -> Status:
    failed, why = prompt.state == State.FAILED, prompt.stop_reason
    kept = sum(isinstance(entry, ToolOutput) and entry.result.type == "success" for entry in entries)
    on = prompt.state != State.COMPLETED and prompt.fence > 0
    again = prompt.input is not None and not getattr(prompt, "gone", False)
    onwards = on and (not again or why in GOES_ON or (kept > 0 and why != "parse_failures"))
    return Status(
        prompt.state,
        prompt.ended_at or prompt.created_at,
        because=(because or FAILURES.get(why, "It ended before it was done.")) if failed else "",
        advice=ADVICE.get(why, "") if failed else "",
        kept=kept,
        rounds=prompt.rounds,
        tokens=prompt.input_tokens + prompt.output_tokens,
        spent=spent,
        answered=why != "terminate",
        on=on,
        again=again,
        first="on" if onwards else "again" if again else "",
    )


def _last_steps(blocks: Sequence[Block]) -> int | None:
    """The last block of steps, unless a decision came after it."""
    for number in range(len(blocks) - 1, -1, -1):
        if blocks[number].card:
            return None
        if blocks[number].steps:
            return number
    return None
