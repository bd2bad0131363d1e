"""Lines: messages that start something by name, such as `/project.create name=Shop`.

What a line means is for the app above that registers here to say; any other message goes to the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User

from conversations.models import Conversation, Prompt


@dataclass(frozen=True)
class SentMessage:
    """A message that a person sends. `conversation` None: it begins one. `key`: the sender's idempotency key."""

    by: User
    text: str
    conversation: Conversation | None = None
    key: str = ""
    has_files: bool = False


LineStart = Callable[[SentMessage], Prompt | str | None]
"""Returns the prompt that it started, the address of a form that asks for what is missing, or None for a plain message.

Raises what start_prompt raises, and NotAllowed; also BadInput for files, where what the line names takes none.
"""

_STARTS: list[LineStart] = []


def register(start: LineStart) -> None:
    """Let this function look at each message that a person sends. Call it from `AppConfig.ready()`."""
    if start not in _STARTS:
        _STARTS.append(start)


def start_line(message: SentMessage) -> Prompt | str | None:
    """Start what this message names. Returns and raises as a LineStart does."""
    return next((done for done in (start(message) for start in _STARTS) if done is not None), None)
