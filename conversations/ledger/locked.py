"""Locked turns: how people's actions append steps. The turn is read under its lock, and written with its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import transaction

from agents.engine.closing import close_turn, given_back
from agents.engine.interfaces.journal import Record
from agents.engine.ledger import Step
from agents.engine.outputs.timeline import Outputs
from agents.engine.secrets import hide_in_step
from agents.engine.view import View
from conversations.ledger.journal import append
from conversations.ledger.place import LedgerPlace
from conversations.ledger.reading import read_steps
from conversations.ledger.secrets import secrets_of
from conversations.models import Conversation, Prompt, State

STOPPED = "Stopped before it was done."


@dataclass
class LockedTurn:
    """The ledger of a prompt, locked with its conversation until the transaction ends."""

    prompt: Prompt
    place: LedgerPlace
    view: View

    def append(self, steps: Iterable[Step], *, outputs: Outputs | None = None, fence: int | None = None) -> None:
        """Record these steps, numbered and dated now, without secrets, with the outputs they change.

        Each is in the view before the next is taken, so a generator can look there to decide what comes next.
        `outputs`: those before, if they are not to be folded from the steps. `fence`: of the worker that writes.
        """
        outputs = Outputs(self.view.steps) if outputs is None else outputs
        placed, changed = [], {}
        with secrets_of(self.prompt).hidden():
            for number, step in enumerate(steps, self.place.seq + 1):
                told = hide_in_step(step.actor, step.type, step.payload)
                new = replace(step, id=number, time=datetime.now(UTC).isoformat(), payload=told)
                placed.append(new)
                self.view.add(new)
                if output := outputs.add(new):
                    changed[output.position] = output
        if placed:
            gives_back = given_back(self.view, placed)
            record = Record(tuple(placed), tuple(changed.values()), gives_back=gives_back)
            self.place = append(self.place, record, fence=fence)

    def stop(self, actor: str, reason: str, *, held: bool) -> None:
        """Record that the turn is stopped. A turn that has ended does not change.

        If no worker holds it, it ends at once; else the worker first ends its calls.
        """
        if self.prompt.ended:
            return
        if not self.view.cancelled():
            self.append([Step(actor, "cancel", {"reason": reason})])
        if not held:
            self.append(close_turn(self.view, State.CANCELLED, "cancelled", STOPPED))


def new_turn(prompt: Prompt, conversation: Conversation) -> LockedTurn:
    """Return the ledger, still empty, of a prompt that was just stored in this conversation, which must be locked."""
    place = LedgerPlace(conversation.pk, prompt.pk, conversation.seq, conversation.head)
    return LockedTurn(prompt, place, View())


@contextmanager
def locked_turn(prompt_id: int, read: Callable[[int, int], Iterable[Step]] = read_steps) -> Iterator[LockedTurn]:
    """Open a transaction that locks this prompt's conversation, so that nobody else writes to its ledger.

    `read` reads the steps of a conversation's prompt, or as many as are needed. Raises Prompt.DoesNotExist.
    """
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update(of=("self",)).filter(prompts=prompt_id).first()
        if conversation is None:
            raise Prompt.DoesNotExist(f"prompt {prompt_id} does not exist, or was erased")
        prompt = Prompt.objects.get(pk=prompt_id)
        prompt.conversation = conversation
        place = LedgerPlace(conversation.pk, prompt.pk, conversation.seq, conversation.head)
        yield LockedTurn(prompt, place, View(read(conversation.pk, prompt.pk)))
