"""What the engine needs of the outside, of a prompt that a worker runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from django.core.files.base import ContentFile

from agents.engine.services import PastTurn
from conversations.crashpoints import crashpoint
from conversations.models import File, Origin, Output, Prompt
from conversations.uploads import attached
from conversations.worker.drafts import PromptDrafts, Write
from conversations.workspaces import folder_of

T = TypeVar("T")


@dataclass
class PromptServices:
    """See agents.engine.services.Services. `started`: this process's monotonic clock at the claim."""

    user: int
    prompt: int
    conversation: int
    unattended: bool
    ran_before: float
    started: float
    write: Write
    drafts: PromptDrafts

    @classmethod
    def of(cls, prompt: Prompt, owner: int, write: Write, drafts: PromptDrafts) -> PromptServices:
        """The services of a prompt that was just claimed."""
        return cls(
            user=owner,
            prompt=prompt.pk,
            conversation=prompt.conversation_id,
            unattended=prompt.origin == Origin.TRIGGER,
            ran_before=prompt.running_seconds,
            started=time.monotonic(),
            write=write,
            drafts=drafts,
        )

    def now(self) -> datetime:
        """See Services."""
        return datetime.now(UTC)

    def workspace(self) -> Path:
        """See Services."""
        return folder_of(self.conversation)

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """See Services."""
        row: int = await self.write(self._save_file, name, content, media_type, summary)
        return row

    def _save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        digest = hashlib.sha256(content).hexdigest()
        row = File(
            conversation_id=self.conversation,
            name=name,
            media_type=media_type,
            size=len(content),
            sha256=digest,
            summary=summary,
        )
        row.content.save(digest, ContentFile(content), save=True)  # the content first: no row without its file
        return row.pk

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """See Services."""
        self.drafts.add(path, text, attempt)
        crashpoint("draft")

    def running_seconds(self) -> float:
        """See Services."""
        return self.ran_before + time.monotonic() - self.started

    async def history(self) -> Sequence[PastTurn]:
        """See Services."""
        turns: list[PastTurn] = await self.write(self._history)
        return turns

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """See Services."""
        found: T = await self.write(function, *args)
        return found

    def _history(self) -> list[PastTurn]:
        # Those that ran before this one: one that was stopped while it queued (fence 0) said nothing.
        ran = Prompt.objects.filter(conversation_id=self.conversation, fence__gt=0).exclude(pk=self.prompt)
        prompts = list(ran.ended().order_by("ended_at", "pk"))
        outputs: dict[int, list[Any]] = {}
        for row in Output.objects.filter(prompt__in=prompts).order_by("prompt_id", "position"):
            outputs.setdefault(row.prompt_id, []).append(row.entry())
        given = attached(prompts)
        return [
            PastTurn(prompt.pk, prompt.input, outputs.get(prompt.pk, []), given.get(prompt.pk, ()))
            for prompt in prompts
        ]
