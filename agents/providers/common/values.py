"""JSON as model servers write it, taken as it comes, and as they are sent it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON, digest

NAME_CHARACTERS = 64
"""The longest name of a tool that any API takes."""

BETWEEN = "\n\n"
"""Stands between two texts that an answer gives apart and we tell as one."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def dumps(value: JSON) -> bytes:
    """Compact JSON in UTF-8. Half a surrogate pair, which a model can produce and an API refuses, becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def arguments_text(arguments: dict[str, JSON]) -> str:
    """A call's arguments as text: sorted, so that it is the same before and after they were stored."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def joined(items: Iterable[bytes]) -> bytes:
    """Chunks of JSON items, some of which may be empty, as one."""
    return b",".join(filter(None, items))


def fit_name(name: str) -> str:
    """A tool's name as an API takes it.

    One that the model made up may hold anything; the API would refuse the whole history for it, for ever.
    """
    return _NOT_IN_NAMES.sub("_", name)[:NAME_CHARACTERS] or "_"


def fit_call_id(call_id: str, longest: int) -> str:
    """The id itself, or its digest where it is no `longest` visible ASCII characters at most."""
    fits = 0 < len(call_id) <= longest and call_id.isascii() and call_id.isprintable() and " " not in call_id
    return call_id if fits else digest(call_id)[:longest]


def as_object(value: JSON) -> dict[str, JSON]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_objects(value: JSON) -> list[dict[str, JSON]]:
    """The objects of an array; of anything else none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_text(value: JSON) -> str:
    """The text; "" for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: JSON) -> int:
    """The number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def parse_arguments(value: JSON) -> tuple[dict[str, JSON], str | None]:
    """A call's arguments as (object, None), or as ({}, their text) where they are no JSON object. Blank means none."""
    if isinstance(value, dict):  # some servers do not wrap it in a string
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
    """The call of an answer that was cut inside it: it never runs, even where its arguments can be read.

    It is kept for the model, which reads by what it was `cut`, and goes on.
    """
    return replace(call, arguments={}, raw=f"[{cut}] {written}")


def _finite(text: str) -> float:
    """A number that JSON can say again: NaN, Infinity and 1e999 are none."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number that JSON knows")
    return number


DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
"""Reads what a model wrote. Raises ValueError, and RecursionError for what is nested too deep."""
