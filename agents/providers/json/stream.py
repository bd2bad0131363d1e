"""Text of the JSON text protocol as it streams: nothing that may be a call is let through before all is known (R9)."""

from __future__ import annotations

import re

from agents.providers.json.answer import FENCE, LINE, begins_call

_MAY_OPEN = re.compile(
    r"(?<![`~])[`~]++\Z|(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+\w{0,12}\s*+\Z"
    r"|^[ \t]*(?:(?:`{3,}+|~{3,}+)[^\n`]*+\s*+|<[^<>\n]{0,40}(?:>\s*)?)\Z",
    re.MULTILINE,
)
"""The beginning, at the end of what has come, of what may open a call: a fence, a tag."""
HELD_MOST = 2_000
"""Characters that are looked through again with each piece: of what is longer, and not known, only the end can tell."""


class Held:
    """Lets prose through. Holds back from a `{` that may begin a call, or what may open one, until it is known.

    A `{` at the very beginning or in a fence may be one to the end; at the beginning of any other line it is one if
    its first key is. So it holds back any white space at the end of what has come, which is no part of the text where
    a call follows.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._begun = self._closed = False

    def feed(self, piece: str) -> str:
        """Take a piece of the answer; returns the text that can be shown now."""
        self._held.append(piece)
        if self._closed or not piece.strip():
            return ""
        before = "x" if self._begun else ""  # what was shown ends in a word: no line begins after it
        text = before + "".join(self._held)
        ready = text[: self._opening(text)].rstrip().removeprefix(before)
        self._held = [text[len(before) + len(ready) :]]
        self._begun = self._begun or bool(ready)
        if len(self._held[0]) > HELD_MOST:
            self._closed = True
        return ready

    def _opening(self, text: str) -> int:
        """Where that begins which must be held back; closes where only the end can tell."""
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
