"""The body of a request: which model it asks for. All else is the model server's own business.

The model decides what a key may do and what it costs, so this must not read another one than the server does. A body
in which two readers could find two different models is refused: with `model` or `stream` twice, in whatever writing, or
with anything at the top that is not JSON. Of nested values only brackets and texts are read; they must fit together,
and there may be nothing around them that JSON never has there, such as a comment. Nor may a text have raw control
characters, at which readers of other formats would begin something new.

Large bodies are read in steps, between which everything else goes on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from agents.engine.ledger import JSON
from agents.passthrough.errors import Refused

NAME_MOST = 200
"""Characters that the name of a model may have, and bytes of a field's name that might be `model` or `stream`."""
OTHERS = ("models", "fallbacks")
"""Fields with models that OpenRouter and LiteLLM ask if the first one fails, which a client can bring about."""
FIELDS_MOST = 1000
"""Fields at the top. The APIs have fewer than a hundred."""
BRACKETS_MOST = 1_000_000
"""Brackets in all: a second's work. A conversation of 20 MB has some ten thousand."""
STRETCH = 64 * 1024
"""Bytes that are read between two pauses: a millisecond's work. No number or white space at the top is longer."""
STEP = 128
"""Bytes that cost as much as one step besides: a field or a bracket."""

_BLANK = re.compile(rb"[ \t\n\r]*+")
_PLAIN = re.compile(rb"-?+(?:0|[1-9][0-9]*+)(?>\.[0-9]++)?+(?>[Ee][+-]?+[0-9]++)?+|true|false|null")
_CHARACTERS = rb'[^"\\\x00-\x1f]*+(?>\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+'
_TEXT = re.compile(_CHARACTERS)
"""A text, or a part of one, without its quotation marks."""
_FLAT = re.compile(rb'(?>[ \t\n\r+\-.0-9:,Eaeflnrstu]++|"%s")*+' % _CHARACTERS)
"""Whatever may be in a list or an object between two brackets. NaN is no JSON."""
_PAIRS = {b"}": ord("{"), b"]": ord("[")}

Reading = Generator[int, None, int]
"""Returns where something ends. Yields what it has cost since it yielded last, in bytes: there others may go on."""


@dataclass(frozen=True)
class Asked:
    """The model that a body asks for, and where its name stands: from `start` to `end`, with its quotation marks.

    `others`: it names more of them, in a field that routers read.
    """

    model: str
    start: int
    end: int
    others: bool = False


async def read(body: bytes) -> Asked:
    """Return what a body asks for. Raises Refused (400) if it is no JSON object with one `model`."""
    reading, cost = _fields(body), 0
    while True:
        try:
            cost += next(reading)
        except StopIteration as done:
            return _asked(body, done.value)
        if cost >= STRETCH:
            cost = 0
            await asyncio.sleep(0)


def with_model(body: bytes, asked: Asked, aliases: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the body for the model server, and its name for the model: those of an alias are replaced."""
    name = aliases.get(asked.model)
    if name is None:
        return body, asked.model
    return body[: asked.start] + json.dumps(name).encode() + body[asked.end :], name


def _asked(body: bytes, fields: Mapping[str, tuple[int, int]]) -> Asked:
    if "model" not in fields:
        raise Refused(400, "missing_model", "The body has no `model`: name the model that you want.", param="model")
    start, end = fields["model"]
    model = _value(body, start, end)
    if not (isinstance(model, str) and 0 < len(model) <= NAME_MOST and model.isprintable()):
        said = f"`model` must be the name of a model: a text of 1 to {NAME_MOST} printable characters."
        raise Refused(400, "invalid_model", said, param="model")
    return Asked(model, start, end, others=not fields.keys().isdisjoint(OTHERS))


def _fields(body: bytes) -> Generator[int, None, dict[str, tuple[int, int]]]:
    """Return where the values of `model`, `stream` and OTHERS stand. Yields as in Reading."""
    found: dict[str, tuple[int, int]] = {}
    at, fields, brackets = _after(body, 0, b"{"), 0, 0
    if body[(at := _blank(body, at)) : at + 1] == b"}":
        return _end(body, at, found)
    while True:
        before = start = at = _blank(body, at)
        at = yield from _text(body, _after(body, at, b'"'))
        name = _value(body, start, at) if at - start <= NAME_MOST else ""
        start = _blank(body, _after(body, at, b":"))
        first = body[start : start + 1]
        if first == b'"':
            at = yield from _text(body, start + 1)
        elif first in (b"{", b"["):
            at, brackets = yield from _nested(body, start, brackets)
        else:
            plain = _PLAIN.match(body, start, start + STRETCH)
            at = plain.end() if plain else _broken(start)
        _keep(found, str(name), (start, at))
        at = _blank(body, at)
        if body[at : at + 1] == b"}":
            return _end(body, at, found)
        at = _after(body, at, b",")
        if (fields := fields + 1) == FIELDS_MOST:
            raise Refused(400, "invalid_body", f"The body has more than {FIELDS_MOST:,} fields: leave some out.")
        yield min(at - before, STRETCH) + STEP


def _end(body: bytes, at: int, found: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    if _blank(body, at + 1) != len(body):
        _broken(at + 1)
    return found


def _keep(found: dict[str, tuple[int, int]], name: str, span: tuple[int, int]) -> None:
    # Some servers, those written in Go, read names without regard to case.
    known = name.casefold()
    if known in OTHERS:
        found[known] = span
    if known not in ("model", "stream"):
        return
    if known in found:
        raise Refused(400, "duplicate_key", f"The body has `{known}` twice: leave one of them out.", param=known)
    if known != name:
        said = f"The body has {json.dumps(name)}: write `{known}` in lower case."
        raise Refused(400, "invalid_body", said, param=known)
    found[known] = span


def _nested(body: bytes, at: int, brackets: int) -> Generator[int, None, tuple[int, int]]:
    """Return the end of the object or list that begins here, and the `brackets` so far. Yields as in Reading."""
    opened, cost = bytearray(body[at : at + 1]), 0
    at += 1
    while opened:
        flat = _FLAT.match(body, at, at + STRETCH)
        end = flat.end() if flat else at
        mark = body[end : end + 1]
        if mark in (b"{", b"["):
            opened += mark
            end += 1
        elif mark in _PAIRS:
            if opened.pop() != _PAIRS[mark]:
                _broken(end)
            end += 1
        elif mark == b'"':  # of a text that goes on behind this stretch
            end = yield from _text(body, end + 1)
        elif end == at:
            _broken(end)
        if (brackets := brackets + 1) > BRACKETS_MOST:
            said = f"The body has more than {BRACKETS_MOST:,} brackets: send it in several requests."
            raise Refused(400, "invalid_body", said)
        if (cost := cost + end - at + STEP) >= STRETCH:
            yield cost
            cost = 0
        at = end
    return at, brackets


def _text(body: bytes, at: int) -> Reading:
    """Return the end of the text whose first quotation mark is before `at`. Yields as in Reading."""
    while True:
        found = _TEXT.match(body, at, at + STRETCH)
        end = found.end() if found else at
        if body[end : end + 1] == b'"':
            return end + 1
        if end == at:
            _broken(at)
        yield end - at
        at = end


def _blank(body: bytes, at: int) -> int:
    """Return where the white space that begins here ends."""
    found = _BLANK.match(body, at, at + STRETCH)
    return found.end() if found else at


def _after(body: bytes, at: int, mark: bytes) -> int:
    at = _blank(body, at)
    return at + 1 if body[at : at + 1] == mark else _broken(at)


def _value(body: bytes, start: int, end: int) -> JSON:
    try:
        return json.loads(body[start:end].decode())
    except ValueError:
        return _broken(start)


def _broken(at: int) -> NoReturn:
    raise Refused(400, "invalid_body", f"The body is not a JSON object in UTF-8: see its byte {at + 1:,}.")
