"""JSON Schema from pydantic models, and what is wrong with an input in words a model can act on."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.engine.ledger import JSON, canonical, digest


@cache
def schema_of(model: type[BaseModel]) -> dict[str, JSON]:
    """The JSON Schema of `model`'s input. Unknown keys are refused, so that nothing shown is silently dropped."""
    schema: dict[str, JSON] = model.model_json_schema()
    schema.pop("title", None)
    return schema | {"additionalProperties": False}


@cache
def schema_digest(model: type[BaseModel]) -> str:
    """Changes when the input's schema changes."""
    return digest(schema_of(model))


def parse(model: type[BaseModel], payload: dict[str, Any]) -> BaseModel:
    """The input that `payload` is. Strict, as the schema says it: a number in quotes is no number (S52).

    Raises pydantic's ValidationError.
    """
    return model.model_validate_json(canonical(payload), strict=True)


def problems(model: type[BaseModel], payload: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with `payload` as input: the place ("tags.0"; "" for the whole) and why. Empty if it is valid."""
    try:
        parse(model, payload)
    except ValidationError as error:
        return [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
    names = {field.alias or name for name, field in model.model_fields.items()}
    unknown = sorted(set(payload) - names)
    return [(", ".join(unknown), f"not known; there are: {', '.join(sorted(names))}")] if unknown else []


def problem(model: type[BaseModel], payload: dict[str, Any]) -> str | None:
    """Why `payload` is no valid input, in one line; None if it is valid (S22, S52)."""
    return "; ".join(f"{place or 'input'}: {why}" for place, why in problems(model, payload)) or None
