"""The transcript of a turn: its events as the one text that a chat completion has."""

from __future__ import annotations

import json
from typing import Any

from django.urls import reverse

from conversations.push.event_reader import SentEvent
from conversations.push.growth import Delta

BETWEEN = "\n\n"
"""Stands between two answers of one turn, and before whatever else is told."""


class Transcript:
    """What the agent said in a turn, with links to the files it made, and words in place of what cannot be sent.

    `site`: the address of the site. `formed`: the answer has a form; then nothing but that answer is told.
    Each method returns what is new, for a client that reads along. `sent` is all that such a client has. `text` is the
    whole for one that does not: without the beginnings of answers that broke off and were asked for again.
    """

    def __init__(self, site: str, *, formed: bool) -> None:
        self.formed = formed
        self._site = site
        self._blocks: dict[str, str] = {}
        self.sent = ""

    @property
    def text(self) -> str:
        """The whole text."""
        return BETWEEN.join(filter(None, self._blocks.values()))

    def delta(self, delta: Delta) -> str:
        """Add a piece of an answer; those of sub-agents and commands are not told, nor words beside a formed answer."""
        if "/" in delta.path or (self.formed and delta.path):
            return ""
        before = self._blocks.get(delta.path, "")
        self._blocks[delta.path] = before[: delta.offset] + delta.text
        return self._send(delta.text, begins=not before or not delta.offset)

    def event(self, event: SentEvent) -> str:
        """Add a file, a widget, or what the site says about the turn."""
        if self.formed or event.type != "output.created":
            return ""
        output = json.loads(event.text)["output"]
        return self.say(f"#{output['position']}", self._words(output))

    def say(self, block: str, words: str) -> str:
        """Add a paragraph of the site. `block`: a name; the same again replaces it in the whole text."""
        if not words:
            return ""
        self._blocks[block] = words
        return self._send(words, begins=True)

    def take_back(self, block: str) -> None:
        """Leave a paragraph of the site out of the whole text."""
        self._blocks.pop(block, None)

    def _send(self, text: str, *, begins: bool) -> str:
        new = f"{BETWEEN if begins and self.sent else ''}{text}"
        self.sent += new
        return new

    def _words(self, output: dict[str, Any]) -> str:
        """Return what is told of an output; "" for nothing. A text of the model was told piece by piece."""
        if (output["parent"] or "").count("/") > 1:
            return ""
        match output:
            case {"type": "file", "file": {"id": int(pk), "name": str(name)}}:
                label = name.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
                return f"[{label}]({self._site}{reverse('download', args=[pk])})"
            case {"type": "widget", "fallback": str(words)}:
                return words
            case {"type": "text", "role_hint": "system", "text": str(words)}:
                return words
        return ""
