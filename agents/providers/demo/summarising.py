"""The demo model that summarises a file: it repeats its first sentences, and understands none."""

from __future__ import annotations

import json
import re

from agents.providers.demo.form import in_form
from agents.providers.demo.reply import Reply
from agents.providers.demo.situation import Situation
from agents.providers.demo.text import key_words, material, sentences, shared, stem

ASKED = re.compile(r'summarise a file of the workspace: (?P<path>"[^\n]*")\n', re.IGNORECASE)
FOCUS = re.compile(r"^What matters: (?P<focus>.+)$", re.MULTILINE)
FIRST, POINTS = 3, 4
"""Sentences of a summary, and points beside it."""
LONGEST = 400
"""Characters of a sentence that is repeated."""
NO_SENTENCES = "It has no sentences that I could repeat."
HONEST = "By the demo model, which repeats the first sentences and understands none."


def summarising(situation: Situation) -> Reply | None:
    """Return the answer to a request for a summary of a file; None to any other request."""
    asked = ASKED.match(situation.said)
    if not asked:
        return None
    before = situation.said.partition("=====")[0]
    focus = FOCUS.search(before)
    found = [each if len(each) <= LONGEST else f"{each[:LONGEST]}…" for each in sentences(material(situation.said))]
    first = found[:FIRST]
    stems = {stem(word) for word in key_words(focus["focus"] if focus else "")} - {stem("everything")}
    told = [each for each in found[FIRST:] if shared(each, stems)] if stems else []
    figures = [each for each in found[FIRST:] if re.search(r"\d", each) and each not in told]
    points = [*told, *figures][:POINTS]
    summary = f"{' '.join(first) or NO_SENTENCES} ({HONEST})"
    words = f"I have read `{_path(asked['path'])}`."
    return in_form(situation, words, {"summary": summary, "points": points}) or Reply("\n".join([summary, *points]))


def _path(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted
