"""The tokens of an answer that passes by: as the model server counts them or, where it does not, as an estimate.

Nothing is kept of an answer but its last bytes: that is where servers put their counts.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import deque
from typing import Any

from agents.passthrough.caller import Tokens
from agents.providers.common.values import token_counts

TAIL = 64 * 1024
"""Bytes at the end of an answer in which its counts are looked for. After them come a few short fields."""
TOKEN_BYTES = 4
"""Bytes of a token, roughly, in English: help.openai.com/en/articles/4936856."""
COUNT_MOST = 10**12
"""Tokens: no answer has so many. A count of more is a mistake, and would not fit into the database for long."""
EVENT_STREAM = "text/event-stream"
"""How the Content-Type of a stream begins."""
READABLE = ("gzip", "deflate")
"""The encodings of an answer that are read here."""

_COUNTS = re.compile(rb'(?<!\\)"usage"\s*:\s*(?=\{)')
_TEXT = re.compile(
    rb'"(?:content|delta|text|arguments|refusal|reasoning|reasoning_content)"\s*:\s*"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
"""What an event of a stream adds to the answer, in all the APIs."""


class Counter:
    """Counts an answer while it passes. `asked`: bytes of the request, which may never be answered."""

    def __init__(self, asked: int) -> None:
        self._asked, self._streams = asked, False
        self._inflate: Any = None
        self._tail: deque[bytes] = deque()
        self._held = self._passed = self._said = 0  # bytes: in the tail, in all, and of texts in a stream
        self._rest = b""  # of an event that has not arrived whole

    def begin(self, kind: str, encoding: str) -> None:
        """Begin an answer with this Content-Type and Content-Encoding."""
        self._streams = kind.startswith(EVENT_STREAM)
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in READABLE else None

    def feed(self, piece: bytes) -> None:
        """Add a piece of the answer."""
        for plain in self._plain(piece):
            self._keep(plain)
            if self._streams:
                self._listen(plain)

    def tokens(self) -> Tokens:
        """Return the tokens of what has passed so far."""
        if counts := _counts(b"".join(self._tail)):
            return Tokens(**counts, estimated=False)
        made = self._said if self._streams else self._passed
        return Tokens(input_tokens=self._asked // TOKEN_BYTES, output_tokens=made // TOKEN_BYTES, estimated=True)

    def _plain(self, piece: bytes) -> list[bytes]:
        if self._inflate is None:
            return [piece]
        found = []
        try:
            while piece:  # in steps: a few compressed bytes may be many
                found.append(self._inflate.decompress(piece, TAIL))
                piece = self._inflate.unconsumed_tail
        except zlib.error:
            self._inflate = None
        return found

    def _keep(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._held += len(piece)
        self._passed += len(piece)
        while self._held - len(self._tail[0]) >= TAIL:
            self._held -= len(self._tail.popleft())

    def _listen(self, piece: bytes) -> None:
        whole, end, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest[-TAIL:]
        if end:
            self._said += sum(len(text) for text in _TEXT.findall(whole))


def _counts(tail: bytes) -> dict[str, int]:
    """Return the last token counts in these bytes, under our names; none if there are none."""
    for found in reversed(list(_COUNTS.finditer(tail))):
        counts = _read(tail[found.end() :])
        if 0 < sum(counts.values()) < COUNT_MOST:
            return counts
    return {}


def _read(text: bytes) -> dict[str, int]:
    try:
        usage, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    apis = (("input", "output"), ("prompt", "completion"))
    return max((token_counts(usage, *words) for words in apis), key=lambda counts: sum(counts.values()))
