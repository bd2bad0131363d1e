"""Starting a turn and stopping it: what pages, the API and triggers call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agents.engine.closing import close
from agents.engine.ledger import Step, valid_text
from conversations import wakeup
from conversations.ledger import Turn, locked_turn
from conversations.models import Conversation, Origin, Prompt, State

if TYPE_CHECKING:
    from django.contrib.auth.models import User

INPUT_MOST = 200_000
"""Characters of one message. More is a file."""
STOPPED = "Stopped before it was done."


class TurnInProgress(Exception):
    """A turn of this conversation runs or waits; the message was not taken. Stop it, or wait for its end."""

    def __init__(self, prompt: int | None) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


class BadInput(ValueError):
    """What was said cannot be taken; the message says why and what to do."""


def start_conversation(owner: User, title: str = "") -> Conversation:
    """A new, empty conversation."""
    return Conversation.objects.create(owner=owner, title=title[:200])


def start_prompt(
    conversation: Conversation,
    by: User | None,
    text: str | None,
    *,
    tier: str = "normal",
    origin: Origin = Origin.USER,
    policy: str = "agent",
) -> Prompt:
    """Take what was said and wake a worker. The turn holds the conversation's slot from now on.

    `by` None: the system starts it, with or without a text (S4); such a prompt queues until the slot is free.
    Raises TurnInProgress where a person's message finds the slot taken, BadInput for an empty or overlong text.
    """
    if by or text is not None:
        text = checked(text)
    with transaction.atomic():
        locked = Conversation.objects.select_for_update().get(pk=conversation.pk)
        if by and locked.active_prompt_id:
            raise TurnInProgress(locked.active_prompt_id)
        number = (locked.prompts.aggregate(last=Max("number"))["last"] or 0) + 1
        prompt = Prompt.objects.create(
            conversation=locked, number=number, origin=origin, asked_by=by, policy=policy, tier=tier, input=text
        )
        changes: dict[str, Any] = {"updated_at": timezone.now()}
        if by:
            changes["active_prompt"] = prompt
            if not locked.title and text:
                changes["title"] = titled(text)
        Conversation.objects.filter(pk=locked.pk).update(**changes)
        with locked_turn(prompt.pk) as turn:
            turn.append([_root_call(prompt)])
        transaction.on_commit(wakeup.wake)
    return prompt


def checked(text: str | None) -> str:
    """The text as it is kept. Raises BadInput."""
    cleaned = valid_text(text or "").replace("\r\n", "\n").strip()
    if not cleaned:
        raise BadInput("Write something first.")
    if len(cleaned) > INPUT_MOST:
        raise BadInput(f"That is {len(cleaned):,} characters; a message takes {INPUT_MOST:,}. Send it in parts.")
    return cleaned


def titled(text: str) -> str:
    """A title for a conversation that begins with this text: its first line, cut at a word."""
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else line[:60].rsplit(" ", 1)[0] + "\u2026"


def _root_call(prompt: Prompt) -> Step:
    payload = {"text": prompt.input, "tier": prompt.tier}
    by = f"user:{prompt.asked_by_id}" if prompt.asked_by_id else "system"
    return Step(by, "action_call", {"policy": prompt.policy, "payload": payload, "origin": prompt.origin})


def cancel_prompt(prompt_id: int, by: User, reason: str = "") -> Prompt:
    """Stop a turn. Where no worker holds it, it ends at once; else the worker ends what runs and then the turn.

    Stopping a turn that has ended changes nothing.
    """
    with locked_turn(prompt_id) as turn:
        if not turn.prompt.ended and not turn.view.cancelled():
            turn.append([Step(f"user:{by.pk}", "cancel", {"reason": reason})])
            if not _held(turn):
                turn.append(close(turn.view, State.CANCELLED, "cancelled", STOPPED))
        transaction.on_commit(wakeup.wake)
    turn.prompt.refresh_from_db()
    return turn.prompt


def _held(turn: Turn) -> bool:
    """Whether a worker may be at work on it: only then somebody is there to end what runs."""
    return turn.prompt.state == State.RUNNING and turn.prompt.lease_until > 0
