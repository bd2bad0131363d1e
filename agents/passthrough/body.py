"""The body of a request: which model it asks for. All else is the model server's own business.

The model decides what a key may do and what it costs, so this must not read another one than the server does. A body
in which two readers could find two different models is refused: with `model` or `stream` twice, in whatever writing, or
with anything outside its texts that is not JSON, such as a comment.

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
"""Characters that the name of a model may have."""
STEPS = 1000
"""What is read at a time, in brackets and texts: less than a millisecond's worth."""
STRETCH = 64 * 1024
"""Bytes that are read at a time of what has no brackets and no texts, such as a list of numbers."""

_BLANK = re.compile(rb"[ \t\n\r]*")
_MARK = re.compile(rb"[^ \t\n\r+\-.0-9:,Eaeflnrstu]")
"""What can begin or end something. JSON has only brackets and quotation marks besides these; NaN is no JSON."""
_PLAIN = re.compile(rb"[+\-.0-9Eaeflnrstu]+")
"""A number, true, false or null."""
_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""A text after its first quotation mark."""


@dataclass(frozen=True)
class Asked:
    """The model that a body asks for, and where its name stands: from `start` to `end`, with its quotation marks."""

    model: str
    start: int
    end: int


async def read(body: bytes) -> Asked:
    """Return what a body asks for. Raises Refused (400) if it is no JSON object with one `model`."""
    reading = _fields(body)
    while True:
        try:
            next(reading)
        except StopIteration as done:
            return _asked(body, done.value)
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
    return Asked(model, start, end)


def _fields(body: bytes) -> Generator[None, None, dict[str, tuple[int, int]]]:
    """Return where the values of `model` and `stream` stand. Yields where others may go on."""
    found: dict[str, tuple[int, int]] = {}
    at, steps = _after(body, 0, b"{"), 0
    if body[(at := _blank(body, at)) : at + 1] == b"}":
        return found
    while True:
        if (steps := steps + 1) % STEPS == 0:
            yield
        start = at = _blank(body, at)
        at = yield from _text(body, _after(body, at, b'"'))
        name = _value(body, start, at)
        start = _blank(body, _after(body, _blank(body, at), b":"))
        at = yield from _any(body, start)
        _keep(found, str(name), (start, at))
        at = _blank(body, at)
        if body[at : at + 1] == b"}":
            break
        at = _after(body, at, b",")
    if _blank(body, at + 1) != len(body):
        _broken(at + 1)
    return found


def _keep(found: dict[str, tuple[int, int]], name: str, span: tuple[int, int]) -> None:
    # Some servers, those written in Go, read names without regard to case.
    known = name.casefold()
    if known not in ("model", "stream"):
        return
    if known in found:
        raise Refused(400, "duplicate_key", f"The body has `{known}` twice: leave one of them out.", param=known)
    if known != name:
        said = f"The body has {json.dumps(name)}: write `{known}` in lower case."
        raise Refused(400, "invalid_body", said, param=known)
    found[known] = span


def _any(body: bytes, at: int) -> Generator[None, None, int]:
    """Return the end of the value that begins here."""
    first = body[at : at + 1]
    if first == b'"':
        return (yield from _text(body, at + 1))
    if first in (b"{", b"["):
        return (yield from _nested(body, at))
    plain = _PLAIN.match(body, at)
    return plain.end() if plain else _broken(at)


def _nested(body: bytes, at: int) -> Generator[None, None, int]:
    """Return the end of the object or list that begins here."""
    depth, steps = 0, 0
    while True:
        mark = _MARK.search(body, at, at + STRETCH)
        if (steps := steps + 1) % STEPS == 0 or mark is None:
            yield
        if mark is None:
            at += STRETCH
            if at >= len(body):
                _broken(len(body))
            continue
        at = mark.end()
        match mark[0]:
            case b'"':
                at = yield from _text(body, at)
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if not depth:
                    return at
            case _:
                _broken(mark.start())


def _text(body: bytes, at: int) -> Generator[None, None, int]:
    """Return the end of the text whose first quotation mark is before `at`."""
    if short := _REST.match(body, at, at + STRETCH):
        return short.end()
    start, steps = at, 0
    while (end := body.find(b'"', start)) >= 0:
        before = body[start:end]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return end + 1
        start = end + 1  # that mark was part of the text
        if (steps := steps + 1) % STEPS == 0:
            yield
    return _broken(len(body))


def _blank(body: bytes, at: int) -> int:
    """Return where the white space that begins here ends."""
    found = _BLANK.match(body, at)
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
