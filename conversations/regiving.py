"""Files that were given with a turn, given with another one too."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.attached import Attached
from conversations.models import Prompt
from conversations.uploads import attached


@dataclass(frozen=True)
class Regiving:
    """The files of an earlier prompt of the conversation: the content and the copy in the workspace are those."""

    earlier: Prompt

    def attach(self, prompt: Prompt) -> list[Attached]:
        """Store rows that name them with this prompt, in the transaction that stores it."""
        for row in self.earlier.files.order_by("pk"):
            row.pk, row.prompt = None, prompt
            row.save(force_insert=True)
        return attached([prompt]).get(prompt.pk, [])
