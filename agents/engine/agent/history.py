"""The history of a turn in a provider's bytes. A finished round is projected and encoded once, then only appended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agents.engine.agent.earlier import EarlierTurns
from agents.engine.agent.projection import CallIds, round_messages
from agents.engine.interfaces.messages import Message, UserMessage
from agents.engine.interfaces.provider import Provider
from agents.engine.ledger import JSON
from agents.engine.limits import BYTES_A_TOKEN, Limits
from agents.engine.paths import join
from agents.engine.runtime.recorder import Recorder


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
        room = self._limits.history_tokens * BYTES_A_TOKEN
        earlier = EarlierTurns(self._recorder.services, provider, self._limits)
        if not self._path:
            await earlier.read(room)
        chunks = earlier.chunks
        while len(chunks) > 1 and sum(map(len, chunks)) > room:
            chunks.pop(0)
        if chunks and len(chunks[-1]) > room:
            chunks = [await earlier.last_shortened(room)]
        self._ids = CallIds(earlier.ids)
        said = [UserMessage(self._line)] if self._line and provider.needs_user else self._said
        return [*chunks, provider.encode(said)]

    def _round(self, number: int) -> list[Message]:
        recorder, path = self._recorder, join(self._path, number)
        result = recorder.view.result(path)
        items = tuple(result.payload.get("items", ())) if result else ()
        prompt = recorder.services.prompt
        return round_messages(recorder.outputs, path, self._ids, prompt=prompt, limits=self._limits, items=items)
