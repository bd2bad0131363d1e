"""The demo model's help: what it says about itself, and about the requests that it understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from agents.engine.ledger import JSON
from agents.providers.demo.samples import sample
from agents.providers.demo.sentences import SENTENCE_OF, SENTENCES, Sentence
from agents.providers.demo.situation import Situation

INTRODUCTION = "I am the demo model: a small program that follows rules, not a language model."

GREETING = re.compile(
    r"(hello|hi|hey|good (morning|day|evening))?\W*+(help( me)?|what (can|do) you (do|know|understand)( here)?"
    r"|(who|what) are you)?\W*",
    re.IGNORECASE,
)


def guide(situation: Situation) -> str:
    """Return the help: one example for each offered tool, or only those that the person seems to have meant."""
    examples = dict(_examples(situation.offered))
    if not examples:
        return f"{INTRODUCTION} No tools are available here, so there is nothing I can do."
    if situation.files and not situation.said:
        named = " and ".join(f"`{path}`" for path in situation.files)
        return f"{INTRODUCTION} You gave me {named}. Tell me what to do, for example `read {situation.files[0]}`."
    if GREETING.fullmatch(situation.said):
        join = "You can combine requests with “and” or “then”."
        return f"{INTRODUCTION} Here is what you can ask me to do:\n\n{_list(examples)}\n\n{join}"
    if closest := _closest(situation.said, examples):
        more = "Say `help` to see everything that I understand."
        return f"{INTRODUCTION} I did not understand that. Did you mean this?\n\n{_list(closest)}\n\n{more}"
    return f"{INTRODUCTION} I did not understand that. Here is what you can ask me to do:\n\n{_list(examples)}"


def _list(examples: Iterable[str]) -> str:
    return "\n".join(f"- `{example}`" for example in examples)


def _examples(offered: dict[str, JSON]) -> Iterable[tuple[str, set[str]]]:
    """Yield each example with its keywords: the tools with a sentence first, in that order, then all others."""
    for sentence in SENTENCES:
        if sentence.name in offered or (sentence.skill and "skills_activate" in offered):
            yield sentence.example, _keywords(sentence)
    for name, tool in offered.items():
        if name not in SENTENCE_OF:
            arguments = sample(tool["parameters"])
            with_ = f" with {json.dumps(arguments, ensure_ascii=False)}" if arguments else ""
            yield f"use {name}{with_}", set(name.lower().split("_"))


def _keywords(sentence: Sentence) -> set[str]:
    return _stems(" ".join([*sentence.tool.split("."), sentence.example.split()[0]]))


def _closest(said: str, examples: dict[str, set[str]]) -> list[str]:
    """Return the examples that share the most keywords with what was said; none if no keyword is shared."""
    words = _stems(said)
    shared = {example: len(words & known) for example, known in examples.items()}
    most = max(shared.values(), default=0)
    return [example for example, count in shared.items() if count == most > 0]


def _stems(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())}
