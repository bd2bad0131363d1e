"""Lines: how a run reads as a message, `/project.create name=Shop`, and how a chat's message starts one."""

from __future__ import annotations

import shlex

from agents.engine.ledger import JSON, canonical


def line_of(name: str, input: dict[str, JSON]) -> str:
    """Return the line that starts this workflow with this input."""
    return " ".join([f"/{name}", *(f"{key}={shlex.quote(_text(value))}" for key, value in input.items())])


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else canonical(value)
