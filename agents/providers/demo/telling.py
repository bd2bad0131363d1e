"""How the demo model speaks of calls: what it is about to do, and what came of it."""

from __future__ import annotations

from agents.engine.ledger import JSON
from agents.providers.demo.arguments import quoted
from agents.providers.demo.sentences import SENTENCE_OF, Sentence
from agents.providers.demo.situation import Result

WORD_CHARACTERS = 60
"""The longest argument that is named in a sentence."""
QUOTED_LINES = 12
QUOTED_CHARACTERS = 1200
"""How much of a result is quoted: enough to recognise it. The whole stands with the call."""

REFUSED = ("rejected", "denied")
"""Codes of calls that a person, or a rule of theirs, said no to."""


class _Arguments(dict[str, str]):
    """Arguments as a sentence names them. A person may have taken one away."""

    def __missing__(self, name: str) -> str:
        return "…"


def doing(sentence: Sentence, arguments: JSON) -> str:
    """What a call does, as it follows "I will"."""
    return sentence.does.format_map(_named(arguments))


def told(result: Result) -> str:
    """What came of a call, in a paragraph or two."""
    sentence = SENTENCE_OF.get(result.name)
    if result.code:
        wanted = doing(sentence, result.arguments) if sentence else f"use `{result.name}`"
        return _failed(result, wanted)
    said = (sentence.told if sentence else f"`{result.name}` gave:").format_map(_named(result.arguments))
    before = "A person changed what I asked for before it ran. " if result.changed else ""
    return f"{before}{said}" + (f"\n\n{_beginning(result.text)}" if said.endswith(":") else "")


def _failed(result: Result, wanted: str) -> str:
    if result.code in REFUSED:
        return f"I asked to {wanted}, and that was refused: “{result.text}” I will not ask for it again."
    if result.code == "expired":
        return f"I asked to {wanted}. {result.text}"
    return f"I could not {wanted}: {result.text}"


def _named(arguments: JSON) -> _Arguments:
    return _Arguments({name: _short(str(value)) for name, value in arguments.items()})


def _short(text: str) -> str:
    """On one line, and safe between backticks."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= WORD_CHARACTERS else f"{line[: WORD_CHARACTERS - 1]}…"


def _beginning(text: str) -> str:
    """The first lines of a result, as a block that shows them as they are."""
    if not text.strip():
        return "Nothing."
    lines = text.strip("\n").split("\n")
    shown = "\n".join(lines[:QUOTED_LINES])[:QUOTED_CHARACTERS]
    left = len(lines) - QUOTED_LINES
    return quoted(shown) + (f"\n\n… and {left} more {'line' if left == 1 else 'lines'}." if left > 0 else "")
