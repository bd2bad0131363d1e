"""The engine's services, for a prompt that a worker runs: workspace, files, drafts, quota, history."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.db import DataError, Error

from agents.engine.agent.projection import whole_text
from agents.engine.errors import ToolError
from agents.engine.interfaces.services import PastTurn, PlainServices, Space
from agents.engine.outputs.kinds import ToolOutput
from conversations.database.busy import brief_waits
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import report_if_full
from conversations.database.threads import Write
from conversations.files import storage
from conversations.files.workspaces import folder_of
from conversations.models import File, Output, Prompt
from conversations.prompts import startable
from conversations.prompts.startable import UnknownPolicy
from conversations.triggers.of_turn import TriggersOfTurn
from conversations.usage import quotas
from conversations.usage.storage import OverStorage, check
from conversations.worker.drafts import PromptDrafts
from conversations.worker.history import past_turns, tools_used
from conversations.worker.kept import Kept

T = TypeVar("T")


def _save(row: File) -> None:
    with brief_waits():
        row.save()


def _may_start(policy: str, user: int) -> bool:
    try:
        return startable.find(policy).may(User.objects.get(pk=user))
    except UnknownPolicy:
        return False


class PromptServices(PlainServices):
    """The services of a prompt that was just claimed, read together with its conversation and with its `space`.

    `opened`: whether a tool has had the workspace, which may then hold something else. `patiently` writes what must not
    be lost. `kept`: what the process keeps for all of its turns. `first`: no turn of the conversation ran before it.
    """

    def __init__(
        self,
        prompt: Prompt,
        space: Space,
        write: Write,
        drafts: PromptDrafts,
        lease_lasts: Callable[[], bool],
        *,
        of_apps: Mapping[str, Any] = MappingProxyType({}),
        secrets: Mapping[str, str] = MappingProxyType({}),
        patiently: Write | None = None,
        kept: Kept | None = None,
        first: bool = False,
        zone: str = "UTC",
    ) -> None:
        owner = prompt.conversation.owner_id
        super().__init__(owner, prompt.pk, unattended=not prompt.attended, services=of_apps, secrets=secrets)
        self.conversation, self.drafts, self.zone = prompt.conversation_id, drafts, zone
        self._space, self.opened = space, False
        self._kept, self._first = kept or Kept(), first
        self._asked_by = prompt.asked_by_id or self.user
        self.write, self._patiently, self.lease_lasts = write, patiently or write, lease_lasts
        self.ran_before = prompt.running_seconds
        self.started = time.monotonic()
        """When it was claimed, by this process's clock, plus the time since then that does not count as running."""

    @property
    def triggers(self) -> TriggersOfTurn:
        """The triggers of the owner."""
        return TriggersOfTurn(self.user, self.conversation, self.write)

    def workspace(self) -> Path:
        """Return the folder of the conversation's workspace."""
        self.opened = True
        return folder_of(self.conversation)

    def space(self) -> Space:
        """Return what the workspace may hold, as it was when the prompt was claimed."""
        return self._space

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """Store a file of the conversation and return its id. Raises ToolError if it cannot be stored."""
        row = File(
            conversation_id=self.conversation,
            name=name,
            media_type=media_type,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            summary=summary,
        )
        try:
            await self.write(self._store, row, content)
            await self._patiently(_save, row)
        except OverStorage as error:
            raise ToolError(f"{name} was not stored: {error}.", code="no_space") from error
        except Exception as error:
            if report_if_full(error):
                raise ToolError(f"The site's disk is full: {name} was not stored.", code="disk_full") from error
            if isinstance(error, Error) and not isinstance(error, DataError):
                raise  # the database is unavailable: nothing can be recorded now
            raise ToolError(f"{name} was not stored: {type(error).__name__}: {error}") from error
        return row.pk

    def _store(self, row: File, content: bytes) -> None:
        check(self.user, row.size)
        storage.store(row, ContentFile(content))
        crashpoint("after_content")

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        """Add a piece of text to the draft at this path."""
        self.drafts.add(path, text, attempt)
        crashpoint("draft")

    def running_seconds(self) -> float:
        """Return how long the turn has been running, in all its claims."""
        return self.ran_before + time.monotonic() - self.started

    def may_begin(self) -> bool:
        """Whether the lease has enough time left to start an effect."""
        crashpoint("before_effect")
        return self.lease_lasts()

    async def over_quota(self) -> str | None:
        """Return why the owner's tokens are used up; None while they are not."""
        most = (await self.settled(quotas.limits, self.user)).tokens_a_day
        return quotas.over(await self.write(self._kept.recent, quotas.tokens_today, self.user), most) if most else None

    async def may_start(self, policy: str) -> bool:
        """Whether whoever asked for the turn, or else its owner, may start this policy now."""
        return await self.write(_may_start, policy, self._asked_by)

    async def result_of(self, prompt: int, path: str) -> str:
        """Return the whole result of a call of this conversation. Raises ToolError if there is none."""
        return await self.write(self._result_of, prompt, path)

    def _result_of(self, prompt: int, path: str) -> str:
        rows = Output.objects.filter(conversation_id=self.conversation, prompt_id=prompt, path=path, type="tool")
        entry = row.entry() if (row := rows.first()) else None
        text = whole_text(entry) if isinstance(entry, ToolOutput) else None
        if text is None:
            raise ToolError("There is no such result in this conversation.", code="not_found")
        return text

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        """Return the turns of the conversation that ran before this one."""
        if self._first:
            return []
        return await self.write(past_turns, self.conversation, self.prompt, most, skip, encoding)

    async def tools_used(self) -> set[str]:
        """Return the names of the tools that these turns called."""
        return set() if self._first else await self.write(tools_used, self.conversation, self.prompt)

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in the thread that owns the database connection, and return its result."""
        return await self.write(function, *args)

    async def settled(self, function: Callable[..., T], *args: Any) -> T:
        """Return what this function reads, from memory until people change what it rests on."""
        try:
            return self._kept.at_hand(function, *args)
        except KeyError:
            return await self.write(self._kept.settled, function, *args)
