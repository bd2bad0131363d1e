"""Lines: how a run reads as a message, `/project.create name=Shop`, and how such a message starts one.

A line begins with `/` and the name of a workflow. Its words are those that a shell makes of it, so that quotes keep
blanks together:

    /project.create name=Shop title='My first shop' tags=web tags=new

`field=text` has the text that one would type into this field of the workflow's form, and is read as the form reads it.
A list of texts takes one `field=text` for each item. A choice is named by its value. `field:=json` has any value as
JSON, also those that no text stands for, such as `note:=null`.

What is left is free text: the words that name no field, and all that follows the first line, as it is. It goes to the
first field of text in the form that the line does not name, has no choices, and is no secret. A word in quotes, such as
`'a=b'`, is free text too. Quotes may hold several lines only behind `field=`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from agents.engine.ledger import JSON, canonical
from agents.engine.secrets import is_reference
from agents.engine.tools.tool import NAME
from conversations.approvals.edits import same_json
from conversations.display.schema_form import SchemaForm
from conversations.display.schema_parsing import Wrong
from conversations.display.schema_values import ABSENT, ValuePlace

_COMMAND = re.compile(rf"/({NAME})(?=\s|\Z)")
_BARE = r"[^ \t\n\\'\"]"
_NAMED = rf"""[^ \t\n=\\'"]+=(?>{_BARE}|\\.|'[^']*'|"(?:[^"\\]|\\.)*")*+"""
_WORD = rf"""(?>{_BARE}|\\[^\n]|'[^'\n]*'|"(?:[^"\\\n]|\\[^\n])*")++"""
_WORDS = re.compile(rf"{_NAMED}|{_WORD}|[ \t]+", re.DOTALL)
_KEY = re.compile(r"([^ \t\n=\\'\"]+?)(:?)=")
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*")


SEVERAL = ("lines", "choices")
"""The kinds of fields that take a text for each item of a list."""


class BadLine(ValueError):
    """A line that cannot be split into words. The message says what to do."""


class Named(Protocol):
    """What a line starts: a name, and the JSON Schema of its input."""

    @property
    def name(self) -> str:
        """What follows the slash."""
        ...

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its input."""
        ...


W = TypeVar("W", bound=Named)


@dataclass(frozen=True)
class Line(Generic[W]):
    """A line that names a workflow. `values`: the texts of its fields; those `in_json` are JSON.

    `problems`: what is wrong with the line itself, by field; "" for all of it.
    """

    workflow: W
    values: Mapping[str, str] = field(default_factory=dict)
    in_json: frozenset[str] = frozenset()
    problems: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def form(self) -> SchemaForm:
        """The form of the workflow, filled with what the line says. Its errors are known."""
        return self._filled[0]

    @property
    def input(self) -> dict[str, JSON]:
        """The input that the line says, as far as it can be read: check the errors of `form` before you use it."""
        return self._filled[1]

    @cached_property
    def _filled(self) -> tuple[SchemaForm, dict[str, JSON]]:
        posted = {}
        for number, (name, place) in enumerate(SchemaForm(self.workflow.schema, {}).places()):
            if name in self.values:
                text = self.values[name]
                kind, text = ("json", text) if name in self.in_json else place.typed_as(text)
                posted[f"{kind}-{number}"] = text
        form = SchemaForm(self.workflow.schema, {}, posted)
        input = form.payload()
        for name, why in self.problems.items():
            form.errors.setdefault(name, []).extend(why)
        return form, input


def parse_line(text: str, find: Callable[[str], W | None]) -> Line[W] | None:
    """Return the line that this message is; None for an ordinary message.

    `find` returns the workflow of a name, None if there is none that this person may see: then it is a message too.
    Raises BadLine if it names a workflow, and a quote in it is not closed.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    named = _COMMAND.match(text)
    workflow = find(named[1]) if named else None
    if not named or not workflow:
        return None
    words, below = _words(text[named.end() :])
    return read_words(workflow, words, below)


def as_word(argument: str) -> str:
    """Return an argument that a shell has split already as a word of a line."""
    key = _KEY.match(argument)
    return f"{key[0]}{shlex.quote(argument[key.end() :])}" if key else shlex.quote(argument)


def read_words(workflow: W, words: list[str], below: str = "") -> Line[W]:
    """Return the line with these words, each still in its quotes, and the text `below` its first line."""
    places = dict(SchemaForm(workflow.schema, {}).places())
    values: dict[str, str] = {}
    in_json: set[str] = set()
    problems: dict[str, list[str]] = {}
    free: list[str] = []
    for word in words:
        said = _said(word)
        key = _KEY.match(word)
        name = key[1] if key else ""
        if key is None or (name not in places and not _PLAIN_KEY.fullmatch(name)):
            free.append(said)
        elif name not in places:
            there = f"There are: {', '.join(places)}." if places else "It takes no input."
            problems[name] = [f"There is no such field. {there} Put a word with = in quotes if it is text."]
        elif name not in values:
            values[name] = said[key.end() :]
            in_json |= {name} if key[2] else set()
        elif places[name].kind(code=False) in SEVERAL and name not in in_json and not key[2]:
            values[name] += f"\n{said[key.end() :]}"
        else:
            problems[name] = ["This is given twice."]
    rest = "\n".join([" ".join(free), below]).strip("\n").rstrip()
    if rest.strip():
        if taker := next((name for name, place in places.items() if name not in values and _takes_text(place)), None):
            values[taker] = rest
        else:
            problems[""] = [f"No field takes the text {_shortened(rest)!r}: write field=value."]
    return Line(workflow, values, frozenset(in_json), problems)


def line_of(name: str, input: Mapping[str, JSON], schema: Mapping[str, Any]) -> str:
    """Return the line that starts this workflow with this input, which has this schema. Secrets are left out."""
    places = dict(SchemaForm(schema, input).places())
    told = {key: value for key, value in input.items() if not is_reference(value)}
    return " ".join([f"/{name}", *(word for key, value in told.items() for word in _told(key, value, places[key]))])


def _told(key: str, value: JSON, place: ValuePlace) -> list[str]:
    """Return the words for this value: of its text, if that is read as the same value, else of JSON."""
    empty = replace(place, value=ABSENT)
    if empty.kind(code=False) in SEVERAL and isinstance(value, list):
        texts = [item if isinstance(item, str) else canonical(item) for item in value]
        texts = [text for text in texts if "\n" not in text]
    else:
        texts = [value if isinstance(value, str) and empty.kind(code=False) != "json" else canonical(value)]
    try:
        read = empty.read(*empty.typed_as("\n".join(texts)))
    except Wrong:
        read = ABSENT
    if read is ABSENT or not same_json(read, value) or any("\r" in text for text in texts):
        return [f"{key}:={shlex.quote(canonical(value))}"]
    return [f"{key}={shlex.quote(text)}" for text in texts]


def _takes_text(place: ValuePlace) -> bool:
    """Whether free text goes here: into any text that is not chosen, and no secret."""
    return place.kind(code=False) in ("line", "text")


def _words(text: str) -> tuple[list[str], str]:
    """Return the words of the first line, each still in its quotes, and what is below it. Raises BadLine."""
    words, at = [], 0
    while found := _WORDS.match(text, at):
        words.append(found[0])
        at = found.end()
    if at < len(text) and text[at] != "\n":
        what = "ends with a backslash" if text[at] == "\\" else f"has a quote ({text[at]}) that is not closed"
        raise BadLine(
            f"The line {what}: {_shortened(text[at:])!r}. Close it, or put \\ before it if it is part of the text."
        )
    return [word for word in words if word.strip(" \t")], text[at + 1 :]


def _said(word: str) -> str:
    """Return a word without its quotes."""
    return "".join(shlex.split(word))


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
