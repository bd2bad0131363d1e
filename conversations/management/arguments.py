"""Arguments shared by the commands, and the rows that they name."""

from __future__ import annotations

from argparse import ArgumentTypeError

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from agents.engine.ledger import valid_text
from conversations.database.ids import row_id
from conversations.models import Conversation


def conversation_id(text: str) -> int:
    """Parse the id of a conversation, which may not exist. Raises ArgumentTypeError."""
    return _positive(text, "conversation id")


def step_number(text: str) -> int:
    """Parse the number of a step in its conversation, which may not exist. Raises ArgumentTypeError."""
    return _positive(text, "step number")


def _positive(text: str, kind: str) -> int:
    if not (number := row_id(text)):
        raise ArgumentTypeError(f"{text[:40]!r} is not a {kind}: use a whole number from 1 up.")
    return number


def add_responsible(parser: CommandParser) -> None:
    """Add the arguments of an irreversible action: `by` and `reason`."""
    parser.add_argument("--by", required=True, metavar="USERNAME", help="who is responsible for it")
    parser.add_argument("--reason", type=_reason, required=True, help="why; kept on record")


def _reason(text: str) -> str:
    if not (cleaned := valid_text(text).strip()):
        raise ArgumentTypeError("say why.")
    return cleaned


def user_named(username: str) -> User:
    """Return the user with this name. Raises CommandError if there is none."""
    user: User | None = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    return user


def conversation_with(pk: int) -> Conversation:
    """Return the conversation with this id. Raises CommandError if there is none."""
    conversation = Conversation.objects.filter(pk=pk).first()
    if conversation is None:
        raise CommandError(f"There is no conversation {pk}.")
    return conversation
