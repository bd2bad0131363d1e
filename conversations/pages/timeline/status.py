"""The status of a turn, in the words at its end."""

from __future__ import annotations

from collections.abc import Sequence

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.kinds import ToolOutput
from conversations.display.failure import UNEXPLAINED, Failure, Remedy
from conversations.models import Prompt, State
from conversations.pages.timeline.blocks import Block, Status
from conversations.prompts.startable import goes_on
from conversations.usage.totals import Spent

ADVICE = {
    "max_rounds": "Continuing gives it as many rounds again.",
    "timeout": "Continuing gives it as much time again.",
    "quota": "It can continue once your usage in 24 hours is below the limit. Your account page shows both.",
    "parse_failures": "Trying again may help, and so may the other model tier.",
}
"""What the reader can do about it, if the buttons do not make that clear."""
GOES_ON = frozenset({"max_rounds", "timeout", "quota"})
"""Stop reasons of turns that were doing well: continuing them is better than starting again."""


def status_of(
    prompt: Prompt,
    entries: Sequence[Entry],
    blocks: Sequence[Block],
    because: str = "",
    *,
    spent: Spent | None = None,
    failure: Failure | None = None,
) -> Status:
    """Return the status of this prompt. `because`: the reason of the failure that the turn itself recorded.

    `failure`: that of its model.
    """
    if prompt.ended:
        return _ended(prompt, entries, because, spent, failure)
    waiting = [block.card for block in blocks if block.card and block.card.pending]
    if waiting:
        return Status("waiting", prompt.created_at, may=any(card.allow for card in waiting))
    if prompt.state == State.SLEEPING:
        return Status(prompt.state, prompt.created_at, until=prompt.wake_at)
    if prompt.state == State.QUEUED:
        return Status(prompt.state, prompt.created_at)
    if any(block.card and block.card.entry.result.type == "deferred" for block in blocks):
        return Status("continuing", prompt.created_at)
    kind = "speaking" if any(block.prose for block in blocks) else "working"
    return Status(kind, prompt.created_at, activity=_last_activity(blocks))


def _ended(
    prompt: Prompt, entries: Sequence[Entry], because: str, spent: Spent | None, failure: Failure | None
) -> Status:
    failed, why = prompt.state == State.FAILED, prompt.stop_reason
    kept = sum(isinstance(entry, ToolOutput) and entry.result.type == "success" for entry in entries)
    on = prompt.state != State.COMPLETED and prompt.fence > 0 and goes_on(prompt.policy)
    again = prompt.input is not None and not getattr(prompt, "gone", False)
    if failure and failure.remedy is Remedy.NONE:
        on = again = False
    onwards = on and (not again or why in GOES_ON or (kept > 0 and why != "parse_failures"))
    return Status(
        prompt.state,
        prompt.ended_at or prompt.created_at,
        because=(failure.happened if failure else because or UNEXPLAINED) if failed else "",
        advice=(failure.advice if failure else ADVICE.get(why, "")) if failed else "",
        failure=failure,
        kept=kept,
        rounds=prompt.rounds,
        tokens=prompt.input_tokens + prompt.output_tokens,
        spent=spent,
        answered=why != "terminate",
        on=on,
        again=again,
        first="on" if onwards else "again" if again else "",
    )


def _last_activity(blocks: Sequence[Block]) -> int | None:
    """Return the number of the last activity block, or None if a decision came after it."""
    for number, block in reversed(list(enumerate(blocks))):
        if block.card or block.activity:
            return None if block.card else number
    return None
