"""Idempotency keys: a request that is sent again with the same key starts nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.engine.ledger import JSON, digest
from conversations.models import Conversation, Prompt

if TYPE_CHECKING:
    from django.contrib.auth.models import User

KEY_MOST = 200
"""Maximum length of a key, in characters."""


class KeyReused(Exception):
    """This key was already used for a different request. Send a new key with each new request."""

    def __init__(self, prompt: int) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


@dataclass(frozen=True)
class KeyedRequest:
    """A request with its idempotency key: "" if the sender gave none. `digest` is the digest of what was sent."""

    by: User | None
    key: str
    digest: str

    @classmethod
    def of(cls, by: User | None, key: str, *sent: JSON) -> KeyedRequest:
        """Return the request for what was sent. Raises ValueError for a key without a sender, or one too long."""
        if key and by is None:
            raise ValueError("only a request made by a person can have a key")
        if len(key) > KEY_MOST:
            raise ValueError(f"the key has {len(key)} characters; the maximum is {KEY_MOST}")
        return cls(by, key, digest(list(sent)) if key else "")

    def new_prompt(self, conversation: Conversation, **fields: Any) -> Prompt:
        """Return a prompt, not stored yet, that carries this request's sender, key and digest."""
        named = {"asked_by": self.by, "request_key": self.key, "request_digest": self.digest}
        return Prompt(conversation=conversation, **named, **fields)

    def once(self, start: Callable[[], Prompt]) -> Prompt:
        """Return what `start` returns, or the prompt that this request started before.

        `start` stores a prompt of `new_prompt`, in one transaction. If the same request arrives twice at the same
        moment, the database decides: a person's keys are unique. Raises KeyReused, and what `start` raises.
        """
        if earlier := self._earlier():
            return earlier
        try:
            return start()
        except Exception:
            if earlier := self._earlier():  # the same request was faster, and has what this one wanted
                return earlier
            raise

    def _earlier(self) -> Prompt | None:
        """Return the prompt that this request started before. Raises KeyReused if the key was another request's."""
        if not self.key:
            return None
        found = Prompt.objects.filter(asked_by=self.by, request_key=self.key).first()
        if found and found.request_digest != self.digest:
            raise KeyReused(found.pk)
        return found
