"""The history of a turn in a provider's bytes. A finished round is projected and encoded once, then only appended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from agents.engine.agent.projection import CallIds, round_messages, turn_messages
from agents.engine.interfaces.messages import Message, UserMessage
from agents.engine.interfaces.provider import Provider
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import JSON
from agents.engine.limits import Limits
from agents.engine.paths import join
from agents.engine.runtime.recorder import Recorder

BYTES_A_TOKEN = 4
"""A rough estimate for English text in JSON; it errs on the side of sending less."""

RESULT_LEAST = 200
"""The fewest characters worth keeping of a result; anything shorter tells the model nothing."""


class History:
    """What an agent's model is sent before a round: earlier prompts (root agent only), its input, finished rounds.

    `said` is its input. If nobody said anything, `line` replaces it for a provider that needs a user's message.
    """

    def __init__(self, recorder: Recorder, limits: Limits, path: str, said: Sequence[Message], line: str) -> None:
        self._recorder, self._limits, self._path = recorder, limits, path
        self._said, self._line = said, line
        self._ids = CallIds()
        self._chunks: list[bytes] = []
        self._opened = False
        self._digest = hashlib.sha256()
        self._rounds = 0
        self._seq = 0

    async def before(self, number: int, provider: Provider) -> list[bytes]:
        """Return everything before round `number` in the provider's bytes, oldest first."""
        if not self._opened:
            self._opened = True
            for chunk in await self._opening(provider):
                self._append(chunk)
        while self._rounds < number - 1:
            self._rounds += 1
            self._append(provider.encode(self._round(self._rounds)))
        steps = self._recorder.view.steps
        self._seq = steps[-1].id if steps else 0
        return self._chunks

    def reference(self) -> dict[str, JSON]:
        """Return what a round's start records about its history: the last step it may include, and its digest."""
        return {"seq": self._seq, "digest": self._digest.hexdigest()}

    def _append(self, chunk: bytes) -> None:
        if chunk:
            self._chunks.append(chunk)
            self._digest.update(chunk)

    async def _opening(self, provider: Provider) -> list[bytes]:
        """Return the earlier prompts and the input. The oldest prompts are dropped whole to fit the budget (R13).

        The last one always stays, because this turn follows on from it; if it exceeds the budget alone, its results are
        shortened.
        """
        chunks, last = list[bytes](), None
        for past in () if self._path else await self._recorder.services.history():
            if chunk := self._turn(past, provider, self._limits):
                chunks.append(chunk)
                last = past
        room = self._limits.history_tokens * BYTES_A_TOKEN
        while len(chunks) > 1 and sum(map(len, chunks)) > room:
            chunks.pop(0)
        if last and len(chunks[-1]) > room:
            chunks = [self._shortened(last, provider, room)]
        said = [UserMessage(self._line)] if self._line and provider.needs_user else self._said
        return [*chunks, provider.encode(said)]

    def _shortened(self, past: PastTurn, provider: Provider, room: int) -> bytes:
        """Encode a prompt with ever shorter results, until it fits or they are at the minimum."""
        limits = self._limits
        while True:
            limits = replace(limits, result_characters=limits.result_characters // 2)
            self._ids = CallIds()  # it is the only prompt sent
            chunk = self._turn(past, provider, limits)
            if len(chunk) <= room or limits.result_characters <= RESULT_LEAST:
                return chunk

    def _turn(self, past: PastTurn, provider: Provider, limits: Limits) -> bytes:
        return provider.encode(turn_messages(past, self._ids, limits, needs_user=provider.needs_user))

    def _round(self, number: int) -> list[Message]:
        recorder, path = self._recorder, join(self._path, number)
        result = recorder.view.result(path)
        items = tuple(result.payload.get("items", ())) if result else ()
        prompt = recorder.services.prompt
        return round_messages(recorder.outputs, path, self._ids, prompt=prompt, limits=self._limits, items=items)
