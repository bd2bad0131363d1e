"""Samples: a small valid value for a JSON Schema, with only what the schema requires."""

from __future__ import annotations

from agents.engine.ledger import JSON

SIMPLE: dict[str, JSON] = {"string": "text", "integer": 1, "number": 1, "boolean": True, "null": None}


def sample(schema: dict[str, JSON], root: dict[str, JSON] | None = None) -> JSON:
    """Return a value for `schema`. Its references lead into the `$defs` of `root`, by default the schema itself."""
    root = schema if root is None else root
    if reference := schema.get("$ref"):
        named = reference.removeprefix("#/$defs/")
        return sample(root.get("$defs", {}).get(named, {}), root)
    if "const" in schema:
        return schema["const"]
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
