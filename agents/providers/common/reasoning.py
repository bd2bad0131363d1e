"""Reasoning that a model writes in front of its answer, between `<think>` and `</think>`: no part of what it says.

Servers that know the model take it out themselves; of a model that they do not know it comes as text. Where the model's
template has the opening mark in the prompt, only the closing one comes: what streams holds the reasoning until then.
"""

from __future__ import annotations

import re

OPENING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSED = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*(?:\n\s*|\Z)", re.IGNORECASE | re.MULTILINE)
"""The closing mark on a line of its own: within a line it may be a word of the answer's."""
_OPENED = re.compile("<(?:think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_BOM = "\ufeff"


def without_opening(text: str) -> tuple[str, str]:
    """What a whole answer says and the reasoning before it, of one in which nothing opened the reasoning."""
    closed = _CLOSED.search(text)
    if not closed or _OPENED.search(text, 0, closed.start()):
        return text, ""
    return text[closed.end() :], text[: closed.start()].strip()


def apart(text: str) -> tuple[str, str]:
    """What a whole answer says, and the reasoning before it."""
    thoughts = Thoughts()
    said, reasoning = without_opening(thoughts.feed(text) + thoughts.end())
    return said, thoughts.thought or reasoning


class Thoughts:
    """Takes an answer's text in pieces and gives back what is no reasoning, however the pieces are cut.

    Only what the answer begins with is reasoning: the words may also stand in what it says. `thought` is all of it.
    """

    def __init__(self) -> None:
        self.thought = ""
        self._held = ""
        self._closing = ""
        self._speaking = self._thinks = False
        self._parts: list[str] = []

    def feed(self, piece: str) -> str:
        """Take a piece; returns the text that it adds to the answer."""
        if self._speaking:
            return piece
        self._held += piece
        if not piece.strip():
            return ""  # no mark ends with it, nor does the answer begin: all that is held need not be read again
        while self._step():
            pass
        return self._let_go()

    def end(self) -> str:
        """Nothing more comes: returns the text that was held back. Reasoning that was never closed is none of it."""
        if self._closing:
            self._parts.append(self._held)
            self._held = ""
        self._tell()
        self._speaking = True
        return self._let_go()

    def _step(self) -> bool:
        """Go on to the next mark; False where it has not come yet, or the answer itself begins."""
        if self._closing:
            return self._think()
        self._held = self._held.removeprefix(_BOM)
        if opened := OPENING.match(self._held):
            self._closing = f"</{opened[1].lower()}>"
            self._held = self._held[opened.end() :]
            return True
        begun = self._held.lstrip().lower()
        self._speaking = not any(opening.startswith(begun) for opening in _OPENINGS)
        return False

    def _think(self) -> bool:
        closed = re.search(self._closing, self._held, re.IGNORECASE)
        if not closed:  # the end of what has come may be the beginning of the mark
            kept = max(0, len(self._held) - len(self._closing) + 1)
            self._parts.append(self._held[:kept])
            self._held = self._held[kept:]
            return False
        self._parts.append(self._held[: closed.start()])
        self._held = self._held[closed.end() :]
        self._closing = ""
        self._tell()
        return True

    def _tell(self) -> None:
        told = "".join(self._parts).strip()
        self._thinks = self._thinks or bool(self._parts)
        self._parts = []
        self.thought = "\n\n".join(filter(None, [self.thought, told]))

    def _let_go(self) -> str:
        """What was held back, once that is text; the blank lines before it belong to the reasoning."""
        if not self._speaking:
            return ""
        text, self._held = self._held, ""
        return text.lstrip() if self._thinks else text
