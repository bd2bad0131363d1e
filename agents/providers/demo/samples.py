"""Samples: a small valid value for a JSON Schema, with only what the schema requires."""

from __future__ import annotations

from agents.engine.ledger import JSON

SIMPLE: dict[str, JSON] = {"string": "text", "integer": 1, "number": 1, "boolean": True, "null": None}


def sample(schema: dict[str, JSON], root: dict[str, JSON] | None = None) -> JSON:
    """Return a value for `schema`. Its references lead into `root`, by default the schema itself."""
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(_resolve(schema["$ref"], root), root)
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    for known in ("enum", "examples"):
        if schema.get(known):
            return schema[known][0]
    for known in ("anyOf", "oneOf", "allOf"):
        if schema.get(known):
            return sample(schema[known][0], root)
    return _of_type(schema, root)


def _of_type(schema: dict[str, JSON], root: dict[str, JSON]) -> JSON:
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: sample(properties.get(name, {}), root) for name in schema.get("required", ())}
        case "array":
            return [sample(schema.get("items", {}), root)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case kind:
            return SIMPLE.get(kind if isinstance(kind, str) else "string", "text")


def _resolve(reference: str, root: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema that `#/$defs/Name` refers to; an empty one, which allows anything, if there is none."""
    found: JSON = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}
