"""Parsing of what a person said into tasks: requests, joined by "and" and "then"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from agents.engine.ledger import JSON
from agents.providers.common.values import parse_arguments
from agents.providers.demo.arguments import Words
from agents.providers.demo.sentences import IT, QUOTED, SENTENCES, Sentence

T = TypeVar("T")

PLEASE = re.compile(
    r"(please|kindly|now|also|then|okay|ok|hey|hi|hello|let's|(can|could|would|will) you|i want you to"
    r"|i('d| would) like you to)\b[,:!]?\s+",
    re.IGNORECASE,
)
THANKS = re.compile(
    r"([,\s]+(please|thanks|thank you|for me))+(?=[.!?\s]*$)|(?<=[\w`\"'”)\]}/*])[.!?]+\s*$", re.IGNORECASE
)
"""What may follow a request: thanks, and the full stop."""
THANKS_LONGEST = 200
"""Characters at the end of a text that are searched for thanks."""

AND = re.compile(r",?\s+and\s+|,\s+|\s*\n\s*", re.IGNORECASE)
THEN = re.compile(r"[,;.]?\s+(and\s+)?then\s+|[.;!]\s+", re.IGNORECASE)
MOST_JOINTS = 6
"""How many of the places where a text could be split are tried: the work doubles with each."""
LONGEST = 2000
"""Characters of a text that is split. A longer one is a single request, for a sentence with a group in LONG."""

USE = re.compile(
    r"(use|call) (the tool )?`?(?P<name>[\w.-]+)`?( (with|on)?\s*(?P<json>\{.*\}))?", re.IGNORECASE | re.DOTALL
)
REST = ("content", "text", "json")
"""Groups that extend to the end of the message."""
LONG = (*REST, "data", "command")
"""Groups that may match a long text."""


@dataclass(frozen=True)
class Task:
    """One request: the sentence that fits it, and its words.

    `takes_rest`: it contains the person's own text without quotes, which extends to the end of the message or to the
    next such request.
    """

    sentence: Sentence
    words: Words
    takes_rest: bool = False


def understand(said: str) -> list[list[Task]]:
    """Return the steps to do one after another, each a list of tasks to do at once.

    The list is empty if any part of the message was not understood.
    """
    most = MOST_JOINTS if len(said) <= LONGEST else 0

    def together(part: str) -> list[Task]:
        found = _parts(part, AND, task, lambda first, others: _may_follow(first, others[0]), most)
        return [each for number, each in enumerate(found) if each not in found[:number]]

    return _parts(said, THEN, together, lambda first, others: _may_follow(first[-1], others[0][0]), most)


def task(part: str) -> Task | None:
    """Return the task that this text asks for as one request; None if no sentence fits."""
    while polite := PLEASE.match(part):
        part = part[polite.end() :]
    plain = _without_thanks(part)
    for sentence in SENTENCES:
        if found := _fitting(sentence, part, plain):
            return found
    match = USE.fullmatch(plain)
    return _any_tool(match) if match else None


def is_pronoun(path: str) -> bool:
    """Return whether the words stand for a file that was named before."""
    return bool(re.fullmatch(IT.replace(" ", r"\s+"), path, re.IGNORECASE))


def _may_follow(first: Task, second: Task) -> bool:
    """Return whether the second can be a request of its own, and is not part of a text in the first."""
    return second.takes_rest or not first.takes_rest


def _parts(
    text: str, joint: re.Pattern[str], one: Callable[[str], T | None], may: Callable[[T, list[T]], bool], most: int
) -> list[T]:
    """Split the text at joints into as many parts as possible that `one` understands; empty if that fails."""
    for number, cut in enumerate(joint.finditer(text) if most else (), start=1):
        if number > most:
            break
        before = text[: cut.start()]
        if before.count("`") % 2 or before.count('"') % 2 or before.count("“") != before.count("”"):
            continue  # between quotes
        first = one(before)
        others = _parts(text[cut.end() :], joint, one, may, most - number) if first else []
        if first and others and may(first, others):
            return [first, *others]
    whole = one(text)
    return [whole] if whole else []


def _fitting(sentence: Sentence, part: str, plain: str) -> Task | None:
    """Return the task if the sentence fits. A final full stop or thanks are kept only in the person's own text."""
    for pattern in sentence.compiled:
        if len(part) > LONGEST and not pattern.groupindex.keys() & LONG:
            continue
        for text in (part, plain):
            match = pattern.fullmatch(text)
            if not match:
                continue
            caught = {name: value for name, value in match.groupdict("").items() if value.strip()}
            words = {name: _unquoted(name, value) for name, value in caught.items()}
            open_ended = any(name in REST and not re.fullmatch(QUOTED, value) for name, value in caught.items())
            if (text == plain or open_ended) and sentence.arguments(words) is not None:
                return Task(sentence, words, open_ended)
    return None


def _unquoted(name: str, value: str) -> str:
    value = value if name in REST else value.strip()
    return value[1:-1] if re.fullmatch(QUOTED, value) else value


def _without_thanks(text: str) -> str:
    before = None
    while before != text:
        before, end = text, max(0, len(text) - THANKS_LONGEST)
        text = text[:end] + THANKS.sub("", text[end:])
    return text


def _any_tool(match: re.Match[str]) -> Task:
    """Return the task of a request that names its tool and gives the arguments as JSON."""
    words = {"json": match["json"]} if match["json"] else {}
    return Task(Sentence(match["name"], arguments=_from_json), words, bool(words))


def _from_json(words: Words) -> dict[str, JSON] | None:
    arguments, unreadable = parse_arguments(words.get("json"))
    return arguments if unreadable is None else None
