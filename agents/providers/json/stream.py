"""Streaming for the JSON text protocol: text that may be part of a call is held back until that is known (R9)."""

from __future__ import annotations

import re

from agents.providers.json.answer import FENCE, LINE, begins_call

_MAY_OPEN = re.compile(
    r"(?<![`~])[`~]++\Z|(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+\w{0,12}\s*+\Z"
    r"|^[ \t]*(?:(?:`{3,}+|~{3,}+)[^\n`]*+\s*+|<[^<>\n]{0,40}(?:>\s*)?)\Z",
    re.MULTILINE,
)
"""The beginning of a fence or a tag that may open a call, at the end of the text so far."""
HELD_MOST = 2_000
"""Characters of held text that are searched again with each piece. Longer text is held until the end of the answer."""


class Held:
    """A filter that passes prose on, and holds back text that may be a call until it is known whether it is one.

    After a `{` at the very beginning or in a fence, that is known only at the end; after one at the beginning of any
    other line, its first key decides. Whitespace at the end of the text so far is held back, too: if a call follows, it
    is not part of the text.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._begun = self._closed = False

    def feed(self, piece: str) -> str:
        """Add a piece of the answer. Returns the text that can be shown now."""
        self._held.append(piece)
        if self._closed or not piece.strip():
            return ""
        before = "x" if self._begun else ""  # the text shown so far ends in a word, so no line begins after it
        text = before + "".join(self._held)
        ready = text[: self._opening(text)].rstrip().removeprefix(before)
        self._held = [text[len(before) + len(ready) :]]
        self._begun = self._begun or bool(ready)
        if len(self._held[0]) > HELD_MOST:
            self._closed = True
        return ready

    def _opening(self, text: str) -> int:
        """Return where the text to hold back begins. Closes the filter if only the end of the answer can decide."""
        if text.lstrip().startswith("{"):
            self._closed = True
            return 0
        places = [opened.start() for opened in [_MAY_OPEN.search(text)] if opened]
        if fence := FENCE.search(text):
            places.append(fence.start())
        for line in LINE.finditer(text):
            if begins_call(text, line.end()):
                places.append(line.start())
                self._closed = begins_call(f"{text}x", line.end())  # whatever comes next
                break
        self._closed = self._closed or bool(fence)
        return min(places, default=len(text))
