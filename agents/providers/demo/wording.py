"""The demo model's wording of calls: what it is about to do, and what the result was."""

from __future__ import annotations

from collections import defaultdict

from agents.engine.ledger import JSON
from agents.providers.demo.arguments import code_block
from agents.providers.demo.sentences import SENTENCE_OF
from agents.providers.demo.situation import Result

WORD_CHARACTERS = 60
"""Characters of an argument in a sentence; longer ones are cut."""
QUOTED_LINES = 12
QUOTED_CHARACTERS = 1200
"""How much of a result is quoted: enough to recognise it. The page shows all of it with the call."""

REFUSED = ("rejected", "denied")
"""Codes of calls that a person, or one of their rules, refused."""


def describe_call(name: str, arguments: JSON) -> str:
    """Return what a call does, in words that follow "I will"."""
    sentence = SENTENCE_OF.get(name)
    return sentence.does.format_map(_named(arguments)) if sentence else f"use `{name}`"


def describe_result(result: Result) -> str:
    """Return a paragraph or two about the result of a call."""
    if result.code:
        return _describe_failure(result, describe_call(result.name, result.arguments))
    sentence = SENTENCE_OF.get(result.name)
    said = (sentence.told if sentence else f"`{result.name}` returned:").format_map(_named(result.arguments))
    before = "A person edited my request before it ran. " if result.changed else ""
    return f"{before}{said}" + (f"\n\n{_beginning(result.text)}" if said.endswith(":") else "")


def _describe_failure(result: Result, wanted: str) -> str:
    if result.code in REFUSED:
        return f"I asked to {wanted}, but this was refused: “{result.text}” I will not ask again."
    if result.code == "expired":
        return f"I asked to {wanted}. {result.text}"
    return f"I could not {wanted}: {result.text}"


def _named(arguments: JSON) -> defaultdict[str, str]:
    """Return the arguments to insert into a sentence. One may be missing, because a person removed it."""
    return defaultdict(lambda: "…", {name: _short(str(value)) for name, value in arguments.items()})


def _short(text: str) -> str:
    """Return the text on one line, cut to WORD_CHARACTERS and safe between backticks."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= WORD_CHARACTERS else f"{line[: WORD_CHARACTERS - 1]}…"


def _beginning(text: str) -> str:
    """Return the first lines of a result as a code block."""
    if not text.strip():
        return "Nothing."
    lines = text.strip("\n").split("\n")
    shown = "\n".join(lines[:QUOTED_LINES])[:QUOTED_CHARACTERS]
    left = len(lines) - QUOTED_LINES
    return code_block(shown) + (f"\n\n… and {left} more {'line' if left == 1 else 'lines'}." if left > 0 else "")
