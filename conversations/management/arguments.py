"""Argument types shared by the commands."""

from __future__ import annotations

from argparse import ArgumentTypeError

from agents.engine.ledger import valid_text

NUMBER_MOST = 2**63 - 1
"""The largest integer of a database column."""


def conversation_id(text: str) -> int:
    """Parse the id of a conversation, which may not exist. Raises ArgumentTypeError."""
    return _positive(text, "conversation id")


def step_number(text: str) -> int:
    """Parse the number of a step in its conversation, which may not exist. Raises ArgumentTypeError."""
    return _positive(text, "step number")


def _positive(text: str, kind: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= NUMBER_MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is not a {kind}: use a whole number from 1 up.")
    return value


def reason(text: str) -> str:
    """Parse the reason for an irreversible action. Raises ArgumentTypeError if it is empty."""
    if not (cleaned := valid_text(text).strip()):
        raise ArgumentTypeError("say why.")
    return cleaned
