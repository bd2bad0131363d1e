"""Shapes of fields: what a JSON Schema says behind its references and beside null, and which fields have fields inside.

A field has fields inside if it is an object, one of several objects, or a list of objects. All else is a single value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agents.engine.ledger import JSON
from agents.engine.schema import schema_problems

EITHER = ("anyOf", "oneOf")
BRANCHES_MOST = 10
"""Objects to choose from in one field; more are typed as JSON."""


@dataclass(frozen=True)
class Branch:
    """One of the objects that a field may hold. `tag`: the property that tells which, and its value; None: none does.

    A property with several values for this branch is no tag: it is chosen like any other.
    """

    label: str
    schema: Mapping[str, Any]
    tag: tuple[str, str] | None = None


@dataclass(frozen=True)
class Shape:
    """The objects inside a field: the one of a group, those to choose from, or the one of which there are rows."""

    kind: Literal["group", "branches", "rows"]
    branches: tuple[Branch, ...]


def unwrapped(
    schema: Mapping[str, Any], named: Mapping[str, Any], followed: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], bool]:
    """Return the schema behind references and beside null, and whether null is allowed. `named`: its `$defs`.

    What stands beside a reference wins over what is behind it, whose title names a class and no field. `followed`: the
    references behind which it stands; one of them again leads nowhere.
    """
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name not in followed and isinstance(named.get(name), dict):
        behind = {key: value for key, value in named[name].items() if key != "title"}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return unwrapped(behind | beside, named, followed | {name})
    for key in EITHER:
        parts = schema.get(key)
        others = [each for each in parts if each != {"type": "null"}] if isinstance(parts, list) else []
        if isinstance(parts, list) and len(others) < len(parts):
            beside = {name: value for name, value in schema.items() if name != key}
            if len(others) == 1 and isinstance(others[0], dict):
                return unwrapped({**others[0], **beside}, named, followed)[0], True
            return {**beside, key: others}, True
    types = schema.get("type")
    if isinstance(types, list) and "null" in types:
        left = [each for each in types if each != "null"]
        return {**schema, "type": left[0] if len(left) == 1 else left}, True
    return dict(schema), False


def shape_of(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Shape | None:
    """Return what stands inside a field of this schema, which is unwrapped; None for a single value."""
    if _is_object(schema):
        return Shape("group", (Branch("", schema),))
    if either := next((schema[key] for key in EITHER if isinstance(schema.get(key), list)), None):
        branches = _branches(schema, either, named)
        return Shape("branches", branches) if branches else None
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        inner, nullable = unwrapped(schema["items"], named)
        return Shape("rows", (Branch("", inner),)) if _is_object(inner) and not nullable else None
    return None


def _branches(schema: Mapping[str, Any], either: list[Any], named: Mapping[str, Any]) -> tuple[Branch, ...]:
    """Return the objects of a union; none if one of its parts is anything else."""
    found: list[Branch] = []
    for part in either if len(either) <= BRANCHES_MOST else ():
        inner, nullable = unwrapped(part, named) if isinstance(part, dict) else ({}, False)
        if nullable or not _is_object(inner):
            return ()
        behind = named.get(str(part.get("$ref", "")).removeprefix("#/$defs/"))
        title = behind.get("title") if isinstance(behind, dict) else part.get("title")
        found.append(_branch(inner, title if isinstance(title, str) else "", schema.get("discriminator")))
    return tuple(found)


def _branch(inner: dict[str, Any], title: str, discriminator: Any) -> Branch:
    key = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    told = inner["properties"].get(key, {}) if isinstance(key, str) else {}
    if not isinstance(key, str) or not isinstance(told, dict) or not isinstance(told.get("const"), str):
        return Branch(title or "Other", inner)
    left = {name: each for name, each in inner["properties"].items() if name != key}
    needed = [name for name in inner.get("required", ()) if name != key]
    label = told["const"].replace("_", " ").replace("-", " ")
    return Branch(
        f"{label[:1].upper()}{label[1:]}", {**inner, "properties": left, "required": needed}, (key, told["const"])
    )


def branch_of(shape: Shape, value: Mapping[str, JSON], named: Mapping[str, Any]) -> int | None:
    """Return the number of the branch to which this object belongs; None if it fits none."""
    for number, branch in enumerate(shape.branches):
        if branch.tag and value.get(branch.tag[0]) == branch.tag[1]:
            return number
    fitting = (
        number
        for number, branch in enumerate(shape.branches)
        if branch.tag is None and not schema_problems({**branch.schema, "$defs": dict(named)}, dict(value))
    )
    return next(fitting, None)


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Whether this is an object whose fields are all known."""
    known = schema.get("properties")
    return isinstance(known, dict) and bool(known) and not schema.get("additionalProperties")
