"""Reasoning in the text of an answer: what a model writes before it, between `<think>` and `</think>`.

Servers that know the model remove it themselves; for other models it arrives as text. If the model's template puts the
opening tag into the prompt, only the closing tag arrives, and the streamed text contains the reasoning up to there.
"""

from __future__ import annotations

import re

OPENING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSED = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*(?:\n\s*|\Z)", re.IGNORECASE | re.MULTILINE)
"""The closing tag on a line of its own: within a line it may belong to the answer."""
_OPENED = re.compile("<(?:think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_BOM = "\ufeff"


def split_unopened(text: str) -> tuple[str, str]:
    """Split a complete answer into (answer, reasoning), if its reasoning has only a closing tag."""
    closed = _CLOSED.search(text)
    if not closed or _OPENED.search(text, 0, closed.start()):
        return text, ""
    return text[closed.end() :], text[: closed.start()].strip()


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a complete answer into (answer, reasoning)."""
    thoughts = Thoughts()
    said, reasoning = split_unopened(thoughts.feed(text) + thoughts.end())
    return said, thoughts.thought or reasoning


class Thoughts:
    """A filter that removes the reasoning from an answer's text, fed in pieces of any size.

    Only reasoning at the beginning is removed: the tags may occur in the answer itself. `thought` is the reasoning.
    """

    def __init__(self) -> None:
        self.thought = ""
        self._held = ""
        self._closing = ""
        self._speaking = self._thinks = False
        self._parts: list[str] = []

    def feed(self, piece: str) -> str:
        """Add a piece. Returns the text that it adds to the answer."""
        if self._speaking:
            return piece
        self._held += piece
        if not piece.strip():
            return ""  # no tag ends and no answer begins in whitespace: the held text need not be searched again
        while self._step():
            pass
        return self._let_go()

    def end(self) -> str:
        """End the answer. Returns the text that was held back, without reasoning that was never closed."""
        if self._closing:
            self._parts.append(self._held)
            self._held = ""
        self._tell()
        self._speaking = True
        return self._let_go()

    def _step(self) -> bool:
        """Advance to the next tag. Returns False if it has not arrived yet, or the answer itself begins."""
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
        if not closed:  # the end of the held text may be the beginning of the tag
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
        """Return the held text once it is part of the answer. Blank lines before it belong to the reasoning."""
        if not self._speaking:
            return ""
        text, self._held = self._held, ""
        return text.lstrip() if self._thinks else text
