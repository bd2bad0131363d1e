"""The demo model's help: what it says about itself, and about the requests that it understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agents.engine.ledger import JSON
from agents.providers.demo.samples import sample
from agents.providers.demo.sentences import SENTENCE_OF, SENTENCES
from agents.providers.demo.situation import Situation

INTRODUCTION = "I am the demo model: a small program that follows rules, not a language model."

GREETING = re.compile(
    r"(hello|hi|hey|good (morning|day|evening))?\W*+(help( me)?|what (can|do) you (do|know|understand)( here)?"
    r"|(who|what) are you)?\W*",
    re.IGNORECASE,
)


def guide(situation: Situation) -> str:
    """Return the help: one example for each offered tool."""
    examples = "\n".join(f"- `{example}`" for example in _examples(situation.offered))
    if not examples:
        return f"{INTRODUCTION} No tools are available here, so there is nothing I can do."
    if situation.files and not situation.said:
        named = " and ".join(f"`{path}`" for path in situation.files)
        return f"{INTRODUCTION} You gave me {named}. Tell me what to do, for example `read {situation.files[0]}`."
    if GREETING.fullmatch(situation.said):
        join = "You can combine requests with “and” or “then”."
        return f"{INTRODUCTION} Here is what you can ask me to do:\n\n{examples}\n\n{join}"
    return f"{INTRODUCTION} I did not understand that. Here is what you can ask me to do:\n\n{examples}"


def _examples(offered: dict[str, JSON]) -> Iterator[str]:
    """Yield an example for each tool: those with a sentence first, in that order, then all others."""
    for sentence in SENTENCES:
        if sentence.name in offered or (sentence.skill and "skills_activate" in offered):
            yield sentence.example
    for name, tool in offered.items():
        if name not in SENTENCE_OF:
            arguments = sample(tool["parameters"])
            with_ = f" with {json.dumps(arguments, ensure_ascii=False)}" if arguments else ""
            yield f"use {name}{with_}"
