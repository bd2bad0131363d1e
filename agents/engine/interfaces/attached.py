"""Attached files: how a turn's call records the files sent with a message, and what the model reads about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from agents.engine.interfaces.messages import UserMessage
from agents.engine.ledger import JSON


@dataclass(frozen=True)
class Attachment:
    """A file attached to a message. `size` is in bytes; `path` is in the workspace; `name` is its name when sent."""

    id: int
    name: str
    size: int
    path: str

    @classmethod
    def recorded_in(cls, payload: dict[str, JSON]) -> tuple[Attachment, ...]:
        """Return the attachments recorded in the payload of a turn's call."""
        return tuple(cls(**each) for each in payload.get("files", ()))

    def recorded(self) -> dict[str, JSON]:
        """Return what the payload of a turn's call records."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The line about the file that the model reads."""
        return f"[Attached: {self.name}, {self.size:,} bytes. It lies in the workspace as {self.path}.]"


def input_messages(text: str | None, files: Iterable[Attachment]) -> list[UserMessage]:
    """Return the text and attachments of a turn as one message, or no message without either. Text stays as typed."""
    notes = tuple(file.line for file in files)
    return [UserMessage(text or "", notes)] if text or notes else []
