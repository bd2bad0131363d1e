"""Values as unambiguous text: 5 does not look like "5", nor a list like a text of several lines.

A text is shown as it is, and a list of texts line by line, if no other possible value looks the same; the rest is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from agents.engine.ledger import JSON
from agents.engine.schema import schema_of

_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
ANY = frozenset({*_KINDS.values(), "null"})
"""All kinds of values."""


@cache
def kinds_of(input: type[BaseModel]) -> Mapping[str, frozenset[str]]:
    """Return the kinds of values that each field of this input accepts, by name."""
    return kinds_in(schema_of(input))


def kinds_in(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the kinds of values that each field of an object with this schema accepts, by name."""
    return {name: _kinds(each, schema.get("$defs", {})) for name, each in schema.get("properties", {}).items()}


def as_text(value: JSON, kinds: frozenset[str]) -> str:
    """Return the value as text, for a field that accepts values of these kinds; "" only for the empty text."""
    if isinstance(value, str) and not _is_ambiguous(value, kinds):
        return value
    if isinstance(value, list) and "string" not in kinds and value and all(map(_is_line, value)):
        lines = "\n".join(value)
        if _looks(lines) is None:
            return lines
    return json.dumps(value, ensure_ascii=False, indent=2)


def _kinds(schema: JSON, named: Mapping[str, Any], followed: frozenset[str] = frozenset()) -> frozenset[str]:
    if not isinstance(schema, dict):  # true or false
        return frozenset(ANY)
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in named and name not in followed:  # one that leads back to itself says nothing
        return _kinds(named[name], named, followed | {name})
    if either := schema.get("anyOf") or schema.get("oneOf"):
        return frozenset().union(*(_kinds(each, named, followed) for each in either))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return frozenset(map(kind_of, values))
    types = schema.get("type", ANY)
    return frozenset(each.replace("integer", "number") for each in ([types] if isinstance(types, str) else types))


def kind_of(value: JSON) -> str:
    """Return the kind of a value."""
    return _KINDS.get(type(value), "null")


def _is_ambiguous(text: str, kinds: frozenset[str]) -> bool:
    """Whether another value looks like this text. A text in quotes looks like the JSON of another text."""
    if kinds == {"string"}:
        return False
    looks = _looks(text)
    return looks is not None and (looks in kinds or looks == "string")


def _is_line(item: JSON) -> bool:
    return isinstance(item, str) and bool(item.strip()) and "\n" not in item


def _looks(text: str) -> str | None:
    """Return the kind of value that this text is when read as JSON; None if it is not JSON."""
    try:
        return kind_of(json.loads(text))
    except json.JSONDecodeError:
        return None
    except ValueError:
        return "number"  # of more digits than Python reads
    except RecursionError:
        return "array"
