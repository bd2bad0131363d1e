"""What people give to commands, checked alike."""

from __future__ import annotations

from argparse import ArgumentTypeError

from agents.engine.ledger import valid_text

NUMBER_MOST = 2**63 - 1
"""No database counts further."""


def conversation_id(text: str) -> int:
    """That of a conversation, whether there is one or not. Raises ArgumentTypeError."""
    return _counted(text, "id")


def step_number(text: str) -> int:
    """That of a step in its conversation, whether there is one or not. Raises ArgumentTypeError."""
    return _counted(text, "number of a step")


def _counted(text: str, kind: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= NUMBER_MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is no {kind}: write a whole number from 1 on.")
    return value


def reason(text: str) -> str:
    """Why somebody does what cannot be undone. Raises ArgumentTypeError where it says nothing."""
    if not (said := valid_text(text).strip()):
        raise ArgumentTypeError("say why.")
    return said
