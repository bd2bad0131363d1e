"""Values as unambiguous text: 5 does not look like "5", nor a list like a text of several lines.

A text is shown as it is, and a list of texts line by line, if no other possible value looks the same; the rest is JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from agents.engine.ledger import JSON
from agents.engine.schema import schema_of
from agents.engine.secrets import REFERENCE, is_reference
from conversations.display.faithful import first_line

_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
ANY = frozenset({*_KINDS.values(), "null"})
"""All kinds of values."""
SECRET_MOST = 100
"""Characters of the name of a secret that are shown."""
_SECRET = re.compile(r"\s*secret: .*, not shown\s*$", re.DOTALL)


@cache
def kinds_of(input: type[BaseModel]) -> Mapping[str, frozenset[str]]:
    """Return the kinds of values that each field of this input accepts, by name."""
    return kinds_in(schema_of(input))


def kinds_in(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the kinds of values that each field of an object with this schema accepts, by name."""
    return {name: _kinds(each, schema.get("$defs", {})) for name, each in schema.get("properties", {}).items()}


def as_text(value: JSON, kinds: frozenset[str]) -> str:
    """Return the value as text, for a field that accepts values of these kinds; "" only for the empty text.

    In place of a run's secret it says that there is one, which no other text says.
    """
    if is_reference(value):
        return secret_words(value[REFERENCE])
    if isinstance(value, str) and not _is_ambiguous(value, kinds):
        return value
    if isinstance(value, list) and "string" not in kinds and value and all(map(_is_line, value)):
        lines = "\n".join(value)
        if _looks(lines) is None:
            return lines
    return json.dumps(value, ensure_ascii=False, indent=2)


def secret_words(field: str) -> str:
    """Return what is shown in place of the secret that a run was given in this field."""
    return f"secret: {first_line(field, SECRET_MOST)}, not shown"


def without_references(value: JSON) -> JSON:
    """Return the value with words in place of each reference to a secret, at any depth: where nothing is decided."""
    if is_reference(value):
        return secret_words(value[REFERENCE])
    if isinstance(value, list):
        return [without_references(item) for item in value]
    if isinstance(value, dict):
        return {key: without_references(item) for key, item in value.items()}
    return value


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
    if _SECRET.match(text):
        return True
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
