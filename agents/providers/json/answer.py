"""Parser for answers of the JSON text protocol: a call, or plain text, or a malformed attempt at a call (R1).

An attempt is a text, or a fenced block, that begins with `{` and has a key `tool` or was cut before it could have one.
After other words, an attempt begins a line and has all three keys, or was cut before it could have them; it may be in
backticks, in a tag, or in a fence of any language. Anything else is text: an object with other keys, a call in the
middle of a sentence, braces in prose.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import NamedTuple

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.common.values import BETWEEN, DECODER

KEYS = ("tool", "parameters", "terminate")

MOST_TRIED = 20
"""Lines that begin like a call but cannot be parsed, before the answer counts as text: each is parsed to its end."""

FENCE = re.compile(
    r"(?:(?<![`}])`{3,}+|(?<![~}])~{3,}+)[ \t]*(?:json[c5]?|tool(?:_?calls?)?)?\s*(?=\{)",
    re.IGNORECASE,
)
"""The opening of a fenced block that may be a call. A fence right after a `}` closes one."""
LINE = re.compile(r"^[ \t]*(?:(?:`{3,}+|~{3,}+)[^\n`]*+\n\s*|`{1,2}|<[^<>\n]{1,40}>\s*)?(?=\{)", re.MULTILINE)
"""The beginning of a line that may be a call, whatever text is before it."""

_FIRST_WORD = re.compile(r"\{\s*[\"']*(\w*)")
_ENDS_KEY = re.compile(r"[\"']|\s*(?::|\Z)")
_FENCE_END = re.compile(r"\s*(?:`{3,}|~{3,}|\Z)")
_FENCE_ALONE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_CLOSING = re.compile(r"(?:[`~\s]|</[^<>\n]{1,40}>)*")
_TOKEN = re.compile(r"""(?P<quoted>"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|[{}\[\]:,]|[^\s{}\[\]:,"']+""", re.DOTALL)

TRY = 'To use a tool, answer with one JSON object alone: {"tool": "NAME", "parameters": {...}, "terminate": false}.'
"""What an answer that cannot be parsed should have been. In a message, all text after it is for the model only: it may
quote the answer, which may contain calls.
"""


@dataclass(frozen=True)
class ParsedAnswer:
    """A parsed answer. It never has both a `call` and a `problem`; `text` is the text around the call.

    `problem` is the whole message for the model; see `for_people`.
    """

    text: str
    call: ToolRequest | None = None
    problem: str = ""


class _Wrong(NamedTuple):
    """A problem in an answer. `problem` describes it without the answer's own words, `near` quotes the place."""

    problem: str
    near: str = ""


@dataclass(frozen=True)
class _Block:
    """The place of an object, from `start` to `end` with the fence around it. `error`: why it cannot be parsed."""

    start: int
    end: int
    value: JSON = None
    error: _Wrong | None = None


_Decoded = tuple[JSON, int, Exception | None]

_AFTER = _Wrong("There is text after the object.")
_AFTER_IN_FENCE = _Wrong("There is text after the object, inside its fence.")


def for_people(message: str) -> str:
    """Return the part of a problem's message that people see, without the answer's own words."""
    return message.partition(TRY)[0].strip()


def read(raw: str) -> ParsedAnswer:
    """Parse a complete answer."""
    blocks = list(_blocks(raw))
    blocks += _lines(raw, blocks)
    attempts = [block for block in blocks if block.error or "tool" in block.value]
    if not attempts:
        return ParsedAnswer(raw)
    if len(attempts) > 1:
        return _unreadable(raw, _Wrong(f"There are {len(attempts)} calls in the answer; one is allowed."))
    (block,) = attempts
    problem = block.error or _problem(block.value)
    if problem:
        return _unreadable(raw, problem)
    call = ToolRequest(block.value["tool"], block.value["parameters"], terminate=block.value["terminate"])
    around = [raw[: block.start].rstrip(), raw[block.end :].strip()]
    return ParsedAnswer(BETWEEN.join(filter(str.strip, around)), call)


def _unreadable(raw: str, wrong: _Wrong) -> ParsedAnswer:
    return ParsedAnswer(
        raw, problem=f"Your answer is not a tool call that can be read. {wrong.problem} {TRY} {wrong.near}".rstrip()
    )


def _blocks(raw: str) -> Iterator[_Block]:
    """Yield the objects, and the attempts at a call, in the places where a call is allowed."""
    begin = len(raw) - len(raw.lstrip())
    if raw.startswith("{", begin):
        yield from _bare(raw, begin)
        return
    at = 0
    while opened := FENCE.search(raw, at):
        value, end, error = _object(raw, opened.end())
        closed = _FENCE_END.match(raw, end)
        if error or not closed:
            last = _FENCE_ALONE.search(raw, opened.end())
            at = last.end() if last else len(raw)
            keys, whole = _keys(raw[opened.end() : last.start() if last else len(raw)].rstrip())
            if _is_attempt(keys, whole):
                yield _Block(opened.start(), at, error=_why(raw, error, whole) or _AFTER_IN_FENCE)
        else:
            at = closed.end()
            yield _Block(opened.start(), at, value)


def _lines(raw: str, taken: list[_Block]) -> list[_Block]:
    """Return the first call, or attempt at one, that begins a line outside the known blocks: at most one."""
    at = tried = 0
    ends = [block.end for block in taken]
    while tried < MOST_TRIED and (opened := LINE.search(raw, at)):
        number = bisect_right(ends, opened.end())
        block = taken[number] if number < len(taken) and taken[number].start <= opened.end() else None
        if not block and begins_call(raw, opened.end()):
            decoded = _object(raw, opened.end())
            if found := _line(raw, opened.start(), opened.end(), decoded):
                return [found]
            tried += decoded[2] is not None
        at = max(block.end if block else 0, opened.end() + 1)
    return []


def _line(raw: str, start: int, brace: int, decoded: _Decoded) -> _Block | None:
    # Alone, in backticks or a tag, a key `tool` makes it an attempt, as without them; after words, or as code, it needs
    # all keys.
    alone = not raw[:start].strip() and "```" not in raw[start:brace] and "~~~" not in raw[start:brace]
    needed = {"tool"} if alone else set(KEYS)
    value, end, error = decoded
    if error:
        keys, whole = _keys(raw[brace:])
        cut = bool(keys) and not whole and _is_attempt(keys, whole)
        return _Block(start, len(raw), error=_why(raw, error, whole)) if cut or needed <= set(keys) else None
    if not needed <= value.keys():
        return None
    if not _CLOSING.fullmatch(raw, end):
        return _Block(start, len(raw), error=_AFTER)
    return _Block(start, len(raw), value)


def begins_call(text: str, brace: int = 0) -> bool:
    """Return whether the first key after the `{` at `brace` is a key of a call, or may still become one."""
    first = _FIRST_WORD.match(text, brace)
    if first and first.end() == len(text):
        return any(key.startswith(first[1]) for key in KEYS)
    return first is not None and first[1] in KEYS and bool(_ENDS_KEY.match(text, first.end()))


def _bare(raw: str, begin: int) -> Iterator[_Block]:
    value, end, error = _object(raw, begin)
    if error or raw[end:].strip():
        keys, whole = _keys(raw[begin:])
        if _is_attempt(keys, whole):
            yield _Block(begin, len(raw), error=_why(raw, error, whole) or _AFTER)
    else:
        yield _Block(begin, len(raw), value)


def _object(raw: str, start: int) -> _Decoded:
    """Return the object that begins at `start`, its end, and the decoder's error if there is none."""
    try:
        value, end = DECODER.raw_decode(raw, start)
    except (ValueError, RecursionError) as error:
        return None, start, error
    return value, end, None


def _why(raw: str, error: Exception | None, whole: bool) -> _Wrong | None:
    """Return why there is no object; None if there is one. `whole`: it is closed."""
    if error is None:
        return None
    if isinstance(error, RecursionError):
        return _Wrong("The JSON is nested too deep.")
    if not whole:
        return _Wrong("The JSON object is cut off: it is never closed.")
    if not isinstance(error, JSONDecodeError):
        return _Wrong(
            "It is not valid JSON: it contains a number that is not allowed.", f"It says: {str(error)[:200]}."
        )
    near = " ".join(raw[max(0, error.pos - 20) : error.pos + 20].split())
    return _Wrong(f"It is not valid JSON: {error.msg}.", f"The error is near {near!r}.")


def _problem(value: dict[str, JSON]) -> _Wrong | None:
    """Return everything that is wrong with the keys of a call; None if nothing is."""
    near = ""
    wrong = [f"`{key}` is missing." for key in KEYS if key not in value]
    if not (isinstance(value["tool"], str) and value["tool"].strip()):
        wrong.append("`tool` must be the name of a tool, as a string.")
    if "parameters" in value and not isinstance(value["parameters"], dict):
        wrong.append("`parameters` must be an object.")
    if "terminate" in value and not isinstance(value["terminate"], bool):
        wrong.append("`terminate` must be true or false.")
    if others := sorted(value.keys() - set(KEYS)):
        wrong.append("There are unknown keys, which may belong in `parameters`.")
        near = f"Unknown keys: {', '.join(others)[:200]}."
    return _Wrong(" ".join(wrong), near) if wrong else None


def _is_attempt(keys: list[str], whole: bool) -> bool:
    """Return whether invalid JSON with these keys has a key `tool`, or was cut before it could have one."""
    if "tool" in keys:
        return True
    *before, last = keys or [""]
    return not whole and all(key in KEYS for key in before) and any(key.startswith(last) for key in KEYS)


def _keys(text: str) -> tuple[list[str], bool]:
    """Return the keys of the object at the start of `text`, with any quotes or none, and whether it is closed.

    If a word has neither quotes nor a colon, this is not an object: the result is no keys, and closed.
    """
    keys: list[str] = []
    depth, expected, word = 0, False, ""
    for found in _TOKEN.finditer(text):
        part = found[0]
        if word and part != ":":
            return [], True
        if word:
            keys.append(word)
        word = ""
        if part in "{[":
            depth += 1
            expected = depth == 1
        elif part in "}]":
            depth -= 1
            if not depth:
                return keys, True
        elif part == "," and depth == 1:
            expected = True
        elif expected:
            expected = False
            if found["quoted"]:
                keys.append(part.strip("\"'"))
            else:
                word = part
    return ([*keys, word] if word else keys), False
