"""Files that a person gave with what they said: how the turn's call records them, and what the model reads of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from agents.engine.interfaces.messages import UserMessage
from agents.engine.ledger import JSON


@dataclass(frozen=True)
class Attachment:
    """One file. `size` is in bytes; `path` is where it lies in the workspace, `name` what the person calls it."""

    id: int
    name: str
    size: int
    path: str

    @classmethod
    def recorded_in(cls, payload: dict[str, JSON]) -> tuple[Attachment, ...]:
        """Those that a turn's call records."""
        return tuple(cls(**each) for each in payload.get("files", ()))

    def recorded(self) -> dict[str, JSON]:
        """What a turn's call records of it."""
        return asdict(self)

    @property
    def line(self) -> str:
        """What the model reads of it."""
        return f"[Attached: {self.name}, {self.size:,} bytes. It lies in the workspace as {self.path}.]"


def input_messages(text: str | None, files: Iterable[Attachment]) -> list[UserMessage]:
    """What a person said and gave, as one message; none where they did neither. The words stay as they were typed."""
    notes = tuple(file.line for file in files)
    return [UserMessage(text or "", notes)] if text or notes else []
