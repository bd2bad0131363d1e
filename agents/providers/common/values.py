"""JSON values from model servers, which may have any shape, and JSON values for them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from agents.engine.interfaces.provider import ToolDefinition, ToolRequest
from agents.engine.ledger import JSON, digest

T = TypeVar("T")

NAME_CHARACTERS = 64
"""The longest name of a tool that every API accepts."""

BETWEEN = "\n\n"
"""The separator of two texts that an answer gives separately and that are joined here."""

CALL_ID_CHARACTERS = 40
"""The longest call id that every API accepts. It is the limit of Chat Completions; Responses accepts 64 characters."""

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def dumps(value: JSON) -> bytes:
    """Return compact JSON in UTF-8. A lone surrogate, which a model can produce and an API refuses, becomes `?`."""
    return _compact.encode(value).encode("utf-8", "replace")


def arguments_text(arguments: dict[str, JSON]) -> str:
    """Return a call's arguments as text, with sorted keys, so that it is the same before and after storage."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def once_each(encode: Callable[[ToolDefinition], T]) -> Callable[[ToolDefinition], T]:
    """Decorator: keep what is returned for a definition, for as long as there is that definition.

    To encode all of a request's anew would cost more than the rest of the request. Those that a turn makes for itself,
    such as the form of its answer, go with it.
    """
    kept: WeakKeyDictionary[ToolDefinition, T] = WeakKeyDictionary()

    def encoded(definition: ToolDefinition) -> T:
        if (found := kept.get(definition)) is None:
            kept[definition] = found = encode(definition)
        return found

    return encoded


def as_members(members: Mapping[str, bytes]) -> bytes:
    """Return a JSON object of these members, in their order; the values are JSON already."""
    return b"{%b}" % b",".join(b"%b:%b" % (dumps(name), value) for name, value in members.items())


def as_list(items: Iterable[bytes]) -> bytes:
    """Return a JSON list of chunks of items, leaving out empty chunks."""
    return b"[%b]" % b",".join(filter(None, items))


def fit_name(name: str) -> str:
    """Return a tool's name in a form that an API accepts.

    A name that the model made up may contain anything, and the API would refuse the whole history because of it.
    """
    return _NOT_IN_NAMES.sub("_", name)[:NAME_CHARACTERS] or "_"


def fit_call_id(call_id: str) -> str:
    """Return the id, or its digest if it is not 1 to CALL_ID_CHARACTERS visible ASCII characters."""
    fits = re.fullmatch(rf"[!-~]{{1,{CALL_ID_CHARACTERS}}}", call_id)
    return call_id if fits else digest(call_id)[:CALL_ID_CHARACTERS]


def as_object(value: JSON) -> dict[str, JSON]:
    """Return the object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_objects(value: JSON) -> list[dict[str, JSON]]:
    """Return the objects in an array; an empty list for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_text(value: JSON) -> str:
    """Return the text; "" for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: JSON) -> int:
    """Return the number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def token_counts(usage: JSON, given: str, made: str) -> dict[str, int]:
    """Return an API's token counts under our names; empty if the server gives none.

    `given` and `made` are the API's words for what the model reads and writes: `input` and `output`, for example.
    """
    if not isinstance(usage, dict):
        return {}
    read, written = as_object(usage.get(f"{given}_tokens_details")), as_object(usage.get(f"{made}_tokens_details"))
    return {
        "input_tokens": as_count(usage.get(f"{given}_tokens")),
        "cached_tokens": as_count(read.get("cached_tokens")) or as_count(usage.get("prompt_cache_hit_tokens")),
        "output_tokens": as_count(usage.get(f"{made}_tokens")),
        "reasoning_tokens": as_count(written.get("reasoning_tokens")),
    }


def parse_arguments(value: JSON) -> tuple[dict[str, JSON], str | None]:
    """Return a call's arguments as (object, None), or ({}, text) if they are not a JSON object. Blank means none."""
    if isinstance(value, dict):  # some servers do not encode it as a string
        return value, None
    text = as_text(value)
    if not text.strip():
        return {}, None
    try:
        parsed = DECODER.decode(text)
    except (ValueError, RecursionError):
        return {}, text
    return (parsed, None) if isinstance(parsed, dict) else ({}, text)


def cut_short(call: ToolRequest, written: str, cut: str) -> ToolRequest:
    """Return the call in which an answer was cut. It never runs, even if its arguments can be parsed.

    It is kept for the model, which reads what `cut` it, and goes on.
    """
    return replace(call, arguments={}, raw=f"[{cut}] {written}")


def _finite(text: str) -> float:
    """Return a number that JSON can represent. Raises ValueError for NaN, Infinity and 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a JSON number")
    return number


DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
"""Parses what a model wrote. Raises ValueError, and RecursionError if it is nested too deeply."""
