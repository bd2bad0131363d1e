"""Requests that their senders name: the same name again is the same request, and starts nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from agents.engine.ledger import JSON, digest
from conversations.models import Prompt

if TYPE_CHECKING:
    from django.contrib.auth.models import User

KEY_MOST = 200
"""Characters of a request's key."""


class KeyReused(Exception):
    """This key was sent before, with something else. Send a new key with each new request."""

    def __init__(self, prompt: int) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


@dataclass(frozen=True)
class KeyedRequest:
    """What somebody asks for, under a name of their own; "" where they gave none. `digest` is that of what was sent."""

    by: User | None
    key: str
    digest: str

    @classmethod
    def of(cls, by: User | None, key: str, *sent: JSON) -> KeyedRequest:
        """The request for what was sent. Raises ValueError for a key without a sender, or one that is too long."""
        if key and by is None:
            raise ValueError("only a person's request has a key")
        if len(key) > KEY_MOST:
            raise ValueError(f"a key of {len(key)} characters: {KEY_MOST} is the most")
        return cls(by, key, digest(list(sent)) if key else "")

    def once(self, start: Callable[[], Prompt]) -> Prompt:
        """What `start` makes, or what it made when this request came first. `start` stores key and digest.

        The database decides between two at the same moment: a person's keys are unique. Raises KeyReused, and what
        `start` raises.
        """
        if earlier := self._earlier():
            return earlier
        try:
            with transaction.atomic():
                return start()
        except Exception:
            if earlier := self._earlier():  # the same request was faster, and has what this one wanted
                return earlier
            raise

    def _earlier(self) -> Prompt | None:
        """The prompt that came of this request before. Raises KeyReused where the key stands for another."""
        if not self.key:
            return None
        found = Prompt.objects.filter(asked_by=self.by, request_key=self.key).first()
        if found and found.request_digest != self.digest:
            raise KeyReused(found.pk)
        return found
