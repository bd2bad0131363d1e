"""A writer's position in a ledger, and the chain of digests that its steps make."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.engine.ledger import Step, canonical
from conversations.ledger.redacted import sha256


@dataclass
class LedgerPlace:
    """A writer's position in a conversation's ledger: the last step it has seen, and that step's digest."""

    conversation: int
    prompt: int
    seq: int
    head: str
    changes: int = field(default=0, compare=False)
    """How often people had changed what turns rely on, when the last step was recorded."""


def chain_digest(head: str, step: Step, prompt: int, content: str) -> str:
    """Return the digest of a step, chained to the one before. It covers the payload by its SHA-256, `content`, which is
    all that is left of a redacted one.
    """
    line = canonical([head, step.id, prompt, step.path, step.actor, step.type, step.time, content])
    return sha256(line)
