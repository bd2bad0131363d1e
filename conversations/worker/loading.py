"""Reading what a claimed prompt's run starts from, by hand-written SQL: each turn pays for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from django.db import connection
from django.db.models import Model

from agents.engine.interfaces.services import Space
from agents.engine.ledger import JSON, Step
from conversations.accounts.zones import known_zone
from conversations.database.plans import repeated_cursor
from conversations.ledger import secrets
from conversations.ledger.place import LedgerPlace
from conversations.ledger.reading import read_steps
from conversations.ledger.states import newest_states
from conversations.models import Conversation, Prompt
from conversations.usage import quotas, storage
from conversations.worker.kept import Kept

PROMPT = frozenset(
    {
        *("id", "conversation_id", "asked_by_id", "origin", "policy", "input", "together", "continues_id"),
        "running_seconds",
    }
)
CONVERSATION = frozenset({"id", "owner_id", "seq", "head", "workspace_bytes"})
"""The columns that a run needs of its rows; Django reads another when it is asked for."""


@dataclass
class Loaded:
    """What a prompt's run starts from: its row, its ledger, the state of plugins, what its workspace may hold, its
    owner's time zone, and the secrets that it was given.

    `first`: there are no steps of other turns in its conversation.
    """

    prompt: Prompt
    place: LedgerPlace
    steps: list[Step]
    states: dict[str, dict[str, JSON]]
    space: Space
    first: bool
    zone: str
    secrets: dict[str, str] = field(repr=False)


def load(prompt_id: int, kept: Kept) -> Loaded:
    """Read a prompt's ledger, and the state that plugins stored in earlier prompts."""
    prompt, zone = _prompt(prompt_id)
    conversation = prompt.conversation
    steps = read_steps(conversation.pk, prompt_id)
    first = len(steps) >= conversation.seq
    states = {} if first else newest_states(conversation.pk, prompt_id)
    place = LedgerPlace(conversation.pk, prompt.pk, conversation.seq, conversation.head)
    return Loaded(prompt, place, steps, states, _space(conversation, kept), first, zone, secrets.read(prompt))


def _space(conversation: Conversation, kept: Kept) -> Space:
    """Return what the workspace may hold. What its owner's other files take is read anew if it holds anything now: how
    much of a total that was kept is its own, nobody knows.
    """
    owner = conversation.owner_id
    if not (most := storage.bytes_of(kept.settled(quotas.limits, owner))):
        others = 0
    elif conversation.workspace_bytes:
        others = storage.used(owner, but=conversation.pk)
    else:
        others = kept.recent(storage.used, owner)
    return storage.space_beside(others, most)


def _prompt(prompt_id: int) -> tuple[Prompt, str]:
    """Return the prompt with its conversation, with the columns that a run needs, and the name of its owner's zone.

    Raises Prompt.DoesNotExist.
    """
    of_prompt, of_conversation = _in_order(Prompt, PROMPT), _in_order(Conversation, CONVERSATION)
    columns = [f"p.{name}" for name in of_prompt] + [f"c.{name}" for name in of_conversation]
    with repeated_cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(columns)}, a.zone FROM conversations_prompt p"
            " JOIN conversations_conversation c ON c.id = p.conversation_id"
            " LEFT JOIN conversations_account a ON a.user_id = c.owner_id WHERE p.id = %s",
            [prompt_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise Prompt.DoesNotExist(f"prompt {prompt_id} was erased")
    prompt = Prompt.from_db(connection.alias, of_prompt, row[: len(of_prompt)])
    prompt.conversation = Conversation.from_db(connection.alias, of_conversation, row[len(of_prompt) : -1])
    return prompt, known_zone(row[-1] or "").key


@cache
def _in_order(model: type[Model], names: frozenset[str]) -> list[str]:
    """Return these columns in the order in which `from_db` wants their values."""
    return [field.attname for field in model._meta.concrete_fields if field.attname in names]
