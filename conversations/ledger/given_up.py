"""Giving up a turn at whose step workers were lost. Its ledger is not read whole: they may be lost at that."""

from __future__ import annotations

from django.db.models import Case, F, Q, TextField, Value, When

from agents.engine.closing import close_turn
from agents.engine.ledger import Step
from agents.engine.outputs.timeline import Outputs
from agents.engine.paths import is_gate, parent
from conversations.database.busy import brief_waits
from conversations.ledger.claims import STRIKES, Claim
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.ledger.reading import engine_steps
from conversations.models import Output, State
from conversations.models import Step as StepRow

OF_CALLS = ("action_call", "action_start", "action_result")


def give_up(claim: Claim) -> None:
    """Record the end of this turn, with a result for everything open. Raises Fenced if another worker has it by now.

    If that took the last worker down as well, stored outputs are left as they are: an end is recorded in any case.
    """
    why = f"Given up: {claim.strikes} workers in a row were lost at this step."
    with brief_waits(), locked_turn(claim.prompt, read=_calls) as turn:
        outputs = _open_entries(turn) if claim.strikes == STRIKES else Outputs()
        turn.append(close_turn(turn.view, State.FAILED, "crash_loop", why), outputs=outputs, fence=claim.fence)


def _calls(conversation: int, prompt: int) -> list[Step]:
    """Return the calls of a turn, their starts and results, without what tools came to."""
    rows = StepRow.objects.filter(conversation_id=conversation, prompt_id=prompt, type__in=OF_CALLS)
    needed = Q(type="action_call") | Q(actor="model")  # whose answers are counted
    return engine_steps(rows, Case(When(needed, then=F("payload")), default=Value("{}"), output_field=TextField()))


def _open_entries(turn: LockedTurn) -> Outputs:
    """Return the stored entries that change: of the calls that are open, and of what people are asked about.

    The call of a question that is asked again has come to its answer; its entry waits for the next one.
    """
    outputs = Outputs()
    paths = {call.path for call in turn.view.open_calls()}
    paths |= {parent(path) for path in paths if is_gate(path)}
    for row in Output.objects.of(turn.prompt).filter(path__in=paths, type="tool").order_by("position"):
        outputs.put(row.entry())
    return outputs
