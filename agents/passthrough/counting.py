"""The tokens of an answer that passes by: as the model server counts them or, where it does not, as an estimate.

Nothing is kept of an answer but its last bytes, of a stream those of its last event: that is where servers put their
counts. They are read only from where the APIs put them, because an answer also repeats what the client sent.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

from agents.engine.ledger import JSON
from agents.passthrough.caller import Tokens
from agents.providers.common.values import as_object, token_counts

TAIL = 64 * 1024
"""Bytes at the end of an answer, or of an event, in which its counts are looked for. After them come a few fields."""
USAGE_MOST = 4096
"""Bytes of the counts themselves."""
TRIES = 3
"""Places at the end of an answer that are looked at, if its beginning has gone."""
RATIO, SPARE = 100, 1024 * 1024
"""An answer that inflates to more than RATIO times its bytes, and SPARE, is read no further. Texts inflate tenfold."""
TOKEN_BYTES = 4
"""Bytes of a token, roughly, in English: help.openai.com/en/articles/4936856."""
COUNT_MOST = 10**12
"""Tokens: no answer has so many. A count of more is a mistake, and would not fit into the database for long."""
EVENT_STREAM = "text/event-stream"
"""How the Content-Type of a stream begins."""
READABLE = ("gzip", "deflate")
"""The encodings of an answer that are read here."""

_COUNTS = re.compile(rb'(?<!\\)"usage"\s*+:\s*+(?=\{)')
_QUOTED = re.compile(rb'"[^"\\]*+(?>\\.[^"\\]*+)*+"', re.DOTALL)
_TEXT = re.compile(
    rb'"(?:content|delta|text|arguments|refusal|reasoning|reasoning_content)"\s*:\s*"([^"\\]*+(?>\\.[^"\\]*+)*+)"'
)
"""What an event of a stream adds to the answer, in all the APIs."""


class Counter:
    """Counts an answer while it passes. `asked`: bytes of the request, which may never be answered."""

    def __init__(self, asked: int) -> None:
        self._asked, self._streams = asked, False
        self._inflate: Any = None
        self._lost = False  # whether what came could not be inflated
        self._whole = False
        self._came = self._passed = self._said = 0  # bytes: as they came, inflated, and of texts in a stream
        self._tail = b""  # of the answer; in a stream, of the line that has not arrived whole
        self._event = b""  # the data of the last event, or its end

    def begin(self, kind: str, encoding: str) -> None:
        """Begin an answer with this Content-Type and Content-Encoding."""
        self._streams = kind.startswith(EVENT_STREAM)
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in READABLE else None

    def feed(self, piece: bytes) -> None:
        """Add a piece of the answer."""
        for plain in self._plain(piece):
            self._passed += len(plain)
            if self._streams:
                self._listen(plain)
            else:
                self._keep(plain)

    def end(self) -> None:
        """Take what has passed for the whole answer."""
        self._whole = True

    def tokens(self) -> Tokens:
        """Return the tokens of what has passed so far."""
        last = _data(self._tail, b"")  # its line may have no end
        end = (last if _json(last) else self._event) if self._streams else self._tail
        # Where an answer that does not stream breaks off, nobody knows what its end would have been a part of.
        told = not self._lost and (self._streams or self._whole)
        if told and (counts := _counts(end, self._streams)):
            return Tokens(**counts, estimated=False)
        made = self._said if self._streams else self._passed
        return Tokens(input_tokens=self._asked // TOKEN_BYTES, output_tokens=made // TOKEN_BYTES, estimated=True)

    def _plain(self, piece: bytes) -> Iterator[bytes]:
        """Yield what this piece is when inflated, in pieces of at most TAIL: a few compressed bytes may be many."""
        if self._inflate is None:
            yield from (piece[at : at + TAIL] for at in range(0, len(piece), TAIL))
            return
        self._came += len(piece)
        more = not self._lost
        while more:
            try:
                plain = self._inflate.decompress(piece, TAIL)
            except zlib.error:
                self._lost = True
                break
            yield plain
            piece = self._inflate.unconsumed_tail
            self._lost = self._lost or bool(self._inflate.unused_data)  # a second member, which nobody sends
            self._lost = self._lost or self._passed > self._came * RATIO + SPARE
            more = len(plain) == TAIL and not self._lost
        if self._lost:  # what it may have said is guessed by what came
            self._passed += len(piece)
            self._said += len(piece)

    def _keep(self, piece: bytes) -> None:
        self._tail = (self._tail + piece)[-TAIL:]

    def _listen(self, piece: bytes) -> None:
        whole, end, rest = piece.rpartition(b"\n")
        if end:
            whole, self._tail = self._tail + whole, b""
            self._said += sum(len(text[1]) for text in _TEXT.finditer(whole))
            self._event = _data(whole, self._event)[-TAIL:]
        self._keep(rest)


def _data(lines: bytes, before: bytes) -> bytes:
    """Return the data of the last event in these lines that may have counts, else what it was `before`.

    A line of TAIL is data, too: it is the end of one that was longer.
    """
    for line in reversed(lines.split(b"\n")):
        if (len(line) >= TAIL or line.startswith(b"data:")) and _COUNTS.search(line):
            return line.removeprefix(b"data:").strip()
    return before


def _counts(end: bytes, streams: bool) -> dict[str, int]:
    """Return the token counts of an answer, or of an event in a stream, under our names; none if there are none.

    `end`: all of it, or its last TAIL bytes.
    """
    whole = as_object(_json(end))
    if whole or len(end) < TAIL - 2:  # of a line that was cut to TAIL, two bytes of white space may be gone
        usages = [whole.get("usage"), as_object(whole.get("response")).get("usage") if streams else None]
    else:
        usages = [_json(found) for found in _last(end, 2 if streams else 1)]
    apis = (("input", "output"), ("prompt", "completion"))
    for counts in (token_counts(usage, *words) for usage in usages for words in apis):
        if 0 < sum(counts.values()) < COUNT_MOST:
            return counts
    return {}


def _last(end: bytes, deepest: int) -> Iterator[bytes]:
    """Yield where counts begin in the end of some JSON, last first, if they are not nested deeper than that.

    How deep they are is told by the brackets that are closed behind them.
    """
    for found in reversed(deque(_COUNTS.finditer(end), TRIES)):
        rest = _QUOTED.sub(b"", end[found.end() :])
        if 0 < rest.count(b"}") + rest.count(b"]") - rest.count(b"{") - rest.count(b"[") <= deepest:
            yield end[found.end() : found.end() + USAGE_MOST]


def _json(text: bytes) -> JSON:
    """Return the value that this text begins with; None if it is none."""
    try:
        return json.JSONDecoder().raw_decode(text.decode(errors="replace").lstrip())[0]
    except (ValueError, RecursionError):
        return None
