"""The demo model that researches: it searches for the words of the question, and repeats the lines that share most."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agents.engine.ledger import JSON
from agents.providers.demo.form import in_form
from agents.providers.demo.reply import Reply
from agents.providers.demo.situation import Situation
from agents.providers.demo.text import MARKS, key_words, material, shared, stem

SEARCH = re.compile(r"plan the searches for a question about the documents", re.IGNORECASE)
ANSWER = re.compile(r"answer a question from the documents", re.IGNORECASE)
QUESTION = re.compile(r"^The question: (?P<question>.+)$", re.MULTILINE)
SEARCHED = re.compile(r"^Searched for so far: (?P<searched>\{.*\})$", re.MULTILINE)
DOCUMENT = re.compile(r'^--- (?P<path>"[^\n]*")$')
NUMBERED = re.compile(r"^(?P<number>\d+): (?P<text>.*)$")
SEARCHES, CLAIMS = 5, 3
"""Searches of one round, and lines that are repeated."""
HONEST = "I am the demo model: I do not understand the question, and repeat lines that share words with it."


def researching(situation: Situation) -> Reply | None:
    """Return the answer to a request to plan searches or to answer from passages; None to any other request."""
    if SEARCH.match(situation.said):
        return _search(situation)
    if ANSWER.match(situation.said):
        return _answer(situation)
    return None


def _search(situation: Situation) -> Reply:
    """Propose the words of the question; once these were searched for, the beginnings of those that found nothing."""
    before = situation.said.partition("=====")[0]
    searched = _searched(before)
    words = sorted(key_words(_question(before)), key=len, reverse=True)[:SEARCHES]
    wanted = [word for word in words if word.casefold() not in searched]
    if not wanted:
        without = [word for word in words if not searched.get(word.casefold())]
        wanted = [stem(word) for word in without if stem(word) not in searched]
    named = ", ".join(f"`{word}`" for word in wanted)
    said = f"I will search for {named}." if wanted else "I will search for nothing more."
    return in_form(situation, said, {"searches": list(wanted)}) or Reply(said)


def _answer(situation: Situation) -> Reply:
    question = _question(situation.said.partition("=====")[0])
    stems = {stem(word) for word in key_words(question)}
    unique = {text: (path, line, text) for path, line, text in reversed([*_lines(material(situation.said))])}
    scored = [(len(shared(text, stems)), path, line, text) for path, line, text in reversed(unique.values())]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
    best = [each for each in best if 2 * each[0] >= best[0][0]][:CLAIMS]
    claims: list[JSON] = [{"text": text, "sources": [{"path": path, "line": line}]} for _, path, line, text in best]
    answer = " ".join([text for *_, text in best] or ["No line that I was given shares a word with the question."])
    said = f"{answer} ({HONEST})"
    return in_form(situation, "This is my answer.", {"answer": said, "claims": claims}) or Reply(said)


def _question(said: str) -> str:
    found = QUESTION.search(said)
    return found["question"] if found else ""


def _searched(said: str) -> dict[str, int]:
    """Return what was searched for, in lower case, with how many lines each found."""
    found = SEARCHED.search(said)
    try:
        return (
            {str(words).casefold(): int(count) for words, count in json.loads(found["searched"]).items()}
            if found
            else {}
        )
    except (ValueError, TypeError, AttributeError):
        return {}


def _lines(passages: str) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of the passages, each with its path and number. Headings and empty lines are left out."""
    path = ""
    for line in passages.split("\n"):
        if document := DOCUMENT.match(line):
            try:
                path = str(json.loads(document["path"]))
            except ValueError:
                path = ""
        elif (numbered := NUMBERED.match(line)) and path:
            text = MARKS.sub("", numbered["text"]).strip()
            if re.search(r"\w", text) and not numbered["text"].lstrip().startswith("#"):
                yield path, int(numbered["number"]), text
