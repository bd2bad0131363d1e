"""Who calls `/v1`: what this room asks of a site about its people and their keys."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar

Who = TypeVar("Who")
"""A caller, as the site knows them. Of no meaning here."""


@dataclass(frozen=True)
class Tokens:
    """The token counts of one answer, named as in `agents.engine.closing.USAGE`. `estimated`: the answer gave none."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


class Caller(Protocol[Who]):
    """The keys of a site: who has them, what they may do, and what they have used."""

    async def authenticate(self, authorization: str) -> Who:
        """Return who sends this `Authorization` header.

        What is under way asks again twice a second, so that it ends when the key is revoked: the answer may be 0.4
        seconds old.

        Raises Refused for a key that is missing, unknown, expired, revoked or not for `/v1`, and if nobody can tell.
        """
        ...

    def person(self, who: Who) -> Hashable:
        """Return who they are: the places for requests at a time are theirs, whichever key they use."""
        ...

    def may(self, who: Who, model: str) -> None:
        """Count a request to this model, by the provider's name for it; "" for one that asks no model.

        Raises Refused, and counts nothing, if they may not use this model or have reached a limit.
        """
        ...

    def allows(self, who: Who, model: str) -> bool:
        """Whether they may use this model, whatever their limits."""
        ...

    def limited(self, who: Who) -> bool:
        """Whether they may use only some models."""
        ...

    def used(self, who: Who, model: str, tokens: Tokens) -> None:
        """Count the tokens of an answer. Returns at once: whoever calls may be about to end."""
        ...
