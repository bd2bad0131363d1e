"""The earlier turns of a conversation in a provider's bytes. What a turn that has ended encodes to is kept."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.interfaces.provider import Provider
from agents.engine.interfaces.services import EncodedTurn, PastTurn, Services
from agents.engine.limits import Limits

RESULT_LEAST = 200
"""The fewest characters worth keeping of a result; anything shorter tells the model nothing."""

READ_FIRST = 16
"""How many earlier prompts are read at first."""
MORE = 8
"""How many times as many are read next, at most, while they leave room."""


class EarlierTurns:
    """The prompts before this one, as far as they are read: from the newest back, oldest first.

    `ids` are those of their calls as sent.
    """

    def __init__(self, services: Services, provider: Provider, limits: Limits) -> None:
        self._services, self._provider, self._limits = services, provider, limits
        self._turns: list[PastTurn] = []
        self._encoded: dict[int, EncodedTurn] = {}
        self.ids: Set[str] = frozenset()

    @property
    def chunks(self) -> list[bytes]:
        """What is sent of those that say anything."""
        return [chunk for past in self._turns if (chunk := self._encoded[past.prompt].chunk)]

    async def read(self, room: int) -> None:
        """Read all, or more than there is room for, so that a long conversation costs no more than what is sent of it.

        What was kept of a turn may not fit to what comes before it: which call is the first to have an id, and keeps
        it, is known only at the end.
        """
        wanted = READ_FIRST
        encoding = f"{self._provider.encoding}, results of {self._limits.result_characters}"
        while True:
            older = await self._services.history(wanted, skip=len(self._turns), encoding=encoding)
            self._turns = [*older, *self._turns]
            self._encoded |= {past.prompt: past.encoded for past in older if past.encoded}
            await self._encode()
            if len(older) < wanted or self._size() > room:
                await self._encode(fitting=True)
            if len(older) < wanted or self._size() > room:
                return
            fit = len(self._turns) * room // max(self._size(), 1)  # if the older ones are as long as these
            wanted = min(fit - len(self._turns) + READ_FIRST, MORE * len(self._turns))

    async def last_shortened(self, room: int) -> bytes:
        """Encode the last that says anything, alone, with ever shorter results: until it fits, or they are at the
        minimum.
        """
        at = max(at for at, past in enumerate(self._turns) if self._encoded[past.prompt].chunk)
        past, limits = await self._whole(at), self._limits
        while True:
            limits = replace(limits, result_characters=limits.result_characters // 2)
            shortened = self._encode_turn(past, limits, frozenset())
            if len(shortened.chunk) <= room or limits.result_characters <= RESULT_LEAST:
                self.ids = shortened.ids
                return shortened.chunk

    def _size(self) -> int:
        return sum(len(encoded.chunk) for encoded in self._encoded.values())

    async def _encode(self, *, fitting: bool = False) -> None:
        """Encode what is not encoded yet; if `fitting`, also what does not fit to the ids before it."""
        ids: set[str] = set()
        for at, past in enumerate(self._turns):
            known = self._encoded.get(past.prompt)
            if known is None or (fitting and not known.fits(ids)):
                known = self._encoded[past.prompt] = self._encode_turn(await self._whole(at), self._limits, ids)
                past.keep(known)
            ids |= known.ids
        self.ids = ids

    async def _whole(self, at: int) -> PastTurn:
        """Return the turn at this place with all that it is made of."""
        if self._turns[at].encoded:
            (whole,) = await self._services.history(1, skip=len(self._turns) - 1 - at)
            return whole
        return self._turns[at]

    def _encode_turn(self, past: PastTurn, limits: Limits, before: Set[str]) -> EncodedTurn:
        ids = CallIds(before)
        chunk = self._provider.encode(turn_messages(past, ids, limits, needs_user=self._provider.needs_user))
        return EncodedTurn(chunk, frozenset(ids.used), frozenset(ids.taken))
