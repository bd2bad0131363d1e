"""What the demo model says of itself, and of what it understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from agents.engine.ledger import JSON
from agents.providers.demo.samples import sample
from agents.providers.demo.sentences import SENTENCE_OF, SENTENCES, Sentence
from agents.providers.demo.situation import Situation

INTRODUCTION = "I am the demo model: a small program with rules, no language model."

GREETING = re.compile(
    r"(hello|hi|hey|good (morning|day|evening))?\W*+(help( me)?|what (can|do) you (do|know|understand)( here)?"
    r"|(who|what) are you)?\W*",
    re.IGNORECASE,
)


def guide(situation: Situation) -> str:
    """The requests that the tools offered here carry out, one example each; of those that seem to be meant, if any."""
    examples = dict(_examples(situation.offered))
    if not examples:
        return f"{INTRODUCTION} No tool is offered to me here, so there is nothing that I can do."
    if situation.files and not situation.said:
        named = " and ".join(f"`{path}`" for path in situation.files)
        return f"{INTRODUCTION} You gave me {named}. Now say what to do, for example `read {situation.files[0]}`."
    if GREETING.fullmatch(situation.said):
        return f"{INTRODUCTION} This is what you can ask for, and join with “and” or “then”:\n\n{_list(examples)}"
    if close := _close(situation.said, examples):
        more = "Say `help` for all that I understand."
        return f"{INTRODUCTION} I did not understand that. Did you mean this?\n\n{_list(close)}\n\n{more}"
    return f"{INTRODUCTION} I did not understand that. This is what you can ask for:\n\n{_list(examples)}"


def _list(examples: Iterable[str]) -> str:
    return "\n".join(f"- `{example}`" for example in examples)


def _examples(offered: dict[str, JSON]) -> Iterable[tuple[str, set[str]]]:
    """Each example with the words by which it is known. Our own tools first, in their order; then all others."""
    for sentence in SENTENCES:
        if sentence.name in offered or (sentence.skill and "skills_activate" in offered):
            yield sentence.example, _known_by(sentence)
    for name, tool in offered.items():
        if name not in SENTENCE_OF:
            arguments = sample(tool["parameters"])
            with_ = f" with {json.dumps(arguments, ensure_ascii=False)}" if arguments else ""
            yield f"use {name}{with_}", set(name.lower().split("_"))


def _known_by(sentence: Sentence) -> set[str]:
    return _stems(" ".join([*sentence.tool.split("."), sentence.example.split()[0]]))


def _close(said: str, examples: dict[str, set[str]]) -> list[str]:
    """The examples that share the most words with what was said; none where no one shares any."""
    words = _stems(said)
    shared = {example: len(words & known) for example, known in examples.items()}
    most = max(shared.values(), default=0)
    return [example for example, count in shared.items() if count == most > 0]


def _stems(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())}
