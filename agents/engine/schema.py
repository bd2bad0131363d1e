"""JSON Schema of pydantic models, and validation errors in words that a model can act on."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any, LiteralString, Never, NoReturn, TypeVar, get_origin

from jsonschema import Draft202012Validator, SchemaError
from jsonschema import ValidationError as Invalid
from jsonschema.validators import extend
from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agents.engine import complaints
from agents.engine.ledger import DEEPEST, JSON, canonical, copy_json, digest, valid_text

Model = TypeVar("Model", bound=BaseModel)


def plain_json(value: object, where: str = "the result") -> JSON:
    """Return a value as JSON, as pydantic serialises it: dates, decimals, dataclasses, lists of models and so on.

    Texts are made valid. Raises TypeError or ValueError for what cannot be JSON.
    """
    return copy_json(valid_texts(jsonable(value)), where, DEEPEST)


def jsonable(value: object) -> object:
    """Return a value as pydantic serialises it: its texts, numbers and depth may be more than JSON allows here."""
    return to_jsonable_python(value, fallback=_refuse)


def _refuse(value: object) -> JSON:
    raise TypeError(f"a {type(value).__name__} is not JSON")


def valid_texts(value: JSON) -> JSON:
    """Return `value` with every text made valid, including keys."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [valid_texts(item) for item in value]
    if isinstance(value, dict):
        return {valid_texts(key): valid_texts(item) for key, item in value.items()}
    return value


WRITABLE = (NoReturn, Never, LiteralString, bytearray, Iterator)
"""Annotations whose values, if there are any, can be written as JSON, though pydantic has no schema for them."""


def check_annotation(annotation: Any) -> None:
    """Raise TypeError if a value with this annotation cannot be written as JSON."""
    if annotation in WRITABLE or get_origin(annotation) in WRITABLE:
        return
    try:
        TypeAdapter(annotation).json_schema(mode="serialization")
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(str(error).partition("\n")[0]) from error


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""The pydantic error types for a key that a model or a dataclass does not have."""


@cache
def schema_of(model: type[BaseModel]) -> dict[str, JSON]:
    """Return the JSON Schema of `model`'s input. It forbids unknown keys, so that nothing shown is silently dropped."""
    schema: dict[str, JSON] = model.model_json_schema()
    schema.pop("title", None)
    if named := schema.get("$defs"):
        schema["$defs"] = {name: _forbid_unknown(each) for name, each in named.items()}
    return _forbid_unknown(schema)


def _forbid_unknown(schema: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema of an object with `additionalProperties: false`, unless it sets that itself."""
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


@cache
def schema_digest(model: type[BaseModel]) -> str:
    """Return the digest of the model's JSON Schema; it changes when the schema changes."""
    return digest(schema_of(model))


def parse(model: type[Model], payload: dict[str, Any]) -> Model:
    """Parse `payload` as the model's input. Strict, as its schema says: a number in quotes is not a number (S52).

    Raises pydantic's ValidationError.
    """
    return _read(model, payload)[0]


def problems(model: type[BaseModel], payload: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the first problems with `payload` as (place, reason).

    A place is like "tags.0", or "" for the whole input.
    """
    try:
        dropped = _read(model, payload)[1]
    except ValidationError as error:
        return [(".".join(map(str, e["loc"])), complaints.of_pydantic(e)) for e in error.errors()[:PROBLEMS_MOST]]
    found = [(place, "not known") for place in sorted(dropped) if place not in payload][:PROBLEMS_MOST]
    if unknown := sorted(place for place in dropped if place in payload):
        names = {str(input_names(name, field)[0]) for name, field in model.model_fields.items()}
        found.append(complaints.unknown(unknown, names))
    return found


NOTHING_OUTSIDE: Registry[JSON] = Registry()
"""The schemas that others may refer to: none, so that nothing is fetched when an input is checked."""


MESSAGE_MOST = 500
"""The most characters of the reason why a value is refused: it quotes the value, which may be long."""

PROBLEMS_MOST = 50
"""The most problems that are told of one value: each item of a long list may be wrong."""


def _unique_items(_checker: object, unique: bool, items: JSON, _schema: JSON) -> Iterator[Invalid]:
    """Check `uniqueItems` in one pass. That of jsonschema compares each with each if they are objects."""
    if unique and isinstance(items, list) and len({canonical(_plain_numbers(item)) for item in items}) < len(items):
        yield Invalid(f"{items!r} has non-unique elements")


def _plain_numbers(value: JSON) -> JSON:
    """Return `value` with whole numbers for floats that equal them: to JSON Schema, 1 and 1.0 are the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    return value


def _multiple_of(checker: Any, step: float, number: JSON, schema: JSON) -> Iterator[Invalid]:
    """Check `multipleOf`, also of a number that is too large for a float. jsonschema raises OverflowError for it."""
    try:
        yield from Draft202012Validator.VALIDATORS["multipleOf"](checker, step, number, schema) or ()
    except OverflowError:
        if Fraction(number) % Fraction(str(step)):  # as it is written: 0.1 is a tenth
            yield Invalid(f"{number!r} is not a multiple of {step!r}")


SchemaChecker = extend(Draft202012Validator, {"uniqueItems": _unique_items, "multipleOf": _multiple_of})
"""The checker of values under a JSON Schema."""


def schema_problems(
    schema: dict[str, JSON], payload: dict[str, Any], checker: Any = SchemaChecker
) -> list[tuple[str, str]]:
    """Return the first problems with `payload` under this JSON Schema (draft 2020-12), as `problems` does."""
    checked = checker(schema, registry=NOTHING_OUTSIDE)
    try:
        first = islice(checked.iter_errors(payload), PROBLEMS_MOST)
        found = [_complaint(error) for error in first]
    except (Unresolvable, RecursionError):
        return [("", "cannot be checked: its schema refers to itself without end, or to what it does not hold")]
    return [(place, textwrap.shorten(why, MESSAGE_MOST)) for place, why in found]


def _complaint(error: Invalid) -> tuple[str, str]:
    """Return the place and the words of an error of jsonschema. A missing field is a problem of that field."""
    place = [*error.absolute_path]
    if error.validator == "required":
        missing = next((name for name in error.validator_value if error.message.startswith(f"{name!r} ")), "")
        return ".".join(map(str, [*place, missing])), complaints.REQUIRED
    if error.validator == "additionalProperties":
        known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
        unknown = [
            name for name in error.instance if name not in known and not any(re.search(p, name) for p in patterns)
        ]
        named, words = complaints.unknown(unknown, known)
        return ".".join(map(str, [*place, named])), "not known" if patterns else words
    words = complaints.of_json_schema(str(error.validator), error.validator_value, error.instance, error.message, place)
    return ".".join(map(str, place)), words


def check_schema(schema: dict[str, JSON]) -> None:
    """Raise TypeError or ValueError unless this is a JSON Schema of draft 2020-12 that refers to nothing outside.

    What it refers to must be a schema, too: references may lead to where anything can stand, such as an example.
    """
    copy_json(schema, "the schema")
    try:
        Draft202012Validator.check_schema(schema)
        resolver = NOTHING_OUTSIDE.resolver_with_root(DRAFT202012.create_resource(schema))
    except SchemaError as error:
        raise ValueError(f"it is not a JSON Schema: {error.message}") from error
    checked = {id(schema)}
    for reference in dict.fromkeys(_references(schema)):
        try:
            part = resolver.lookup(reference).contents
        except (Unresolvable, TypeError, ValueError) as error:  # the latter for a path through what is no object
            raise ValueError(f"the schema refers to {reference!r}, which it does not hold") from error
        try:
            if id(part) not in checked:
                Draft202012Validator.check_schema(part)
        except SchemaError as error:
            raise ValueError(f"the schema refers to {reference!r}, which is not a JSON Schema") from error
        checked.add(id(part))


def _references(schema: JSON) -> Iterator[str]:
    """Yield every `$ref` of a schema."""
    for key, inner in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "$ref" and isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict | list):
            yield from _references(inner)


def problem(input: type[BaseModel] | dict[str, JSON], payload: dict[str, Any]) -> str | None:
    """Return why `payload` is not a valid input, in one line; None if it is valid (S22, S52).

    `input` is a pydantic model or a JSON Schema.
    """
    return in_one_line(schema_problems(input, payload) if isinstance(input, dict) else problems(input, payload))


def in_one_line(found: Iterable[tuple[str, str]]) -> str | None:
    """Return problems in one line; None if there are none."""
    return "; ".join(f"{place or 'input'}: {why}" for place, why in found) or None


def _read(model: type[Model], payload: dict[str, Any]) -> tuple[Model, set[str]]:
    """Return the parsed input, and the places of the unknown keys it drops from `payload`, at any depth."""
    said = canonical(payload)
    try:
        return model.model_validate_json(said, strict=True, extra="forbid"), set()
    except ValidationError as error:
        read = model.model_validate_json(said, strict=True)
        unknown = [e["loc"] for e in error.errors() if e["type"] in UNKNOWN]
        return read, {".".join(map(str, place)) for place in unknown if not _contains(read, place)}


def _contains(value: Any, place: tuple[int | str, ...]) -> bool:
    """Whether a parsed input kept the value given at this place: a key without a field that the model there allows.

    Looks at the parsed input itself, because dumping it may omit or rename keys.
    """
    part, *rest = place
    if not rest:
        return part in _extra(value)
    inside = list(_children(value, part)) or [value]  # a part that matches nothing names the branch of a union
    return any(_contains(each, tuple(rest)) for each in inside)


def _children(value: Any, part: int | str) -> Iterator[Any]:
    """Yield what `part` of a place may refer to in this value. A dict's key may now be a number or a date."""
    if isinstance(value, RootModel):
        yield from _children(value.root, part)
    elif isinstance(value, BaseModel):
        named = type(value).model_fields.items()
        yield from (getattr(value, name) for name, field in named if part in input_names(name, field))
        yield from _children(value.model_extra, part)
    elif isinstance(value, Mapping):
        yield from (each for key, each in value.items() if str(key) == str(part))
    elif isinstance(value, list | tuple) and isinstance(part, int):
        yield from value[part : part + 1]
    elif is_dataclass(value):
        yield from (getattr(value, each.name) for each in fields(value) if each.name == part)


def _extra(value: Any) -> Mapping[Any, Any]:
    """Return the values under keys that the value's type does not define."""
    if isinstance(value, RootModel):
        return _extra(value.root)
    if isinstance(value, BaseModel):
        return value.model_extra or {}
    return value if isinstance(value, Mapping) else {}


def input_names(name: str, field: FieldInfo) -> list[str | int]:
    """Return the names under which an input may give a field; the first is the one in the schema."""
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else []
    return [*(each.path[0] if isinstance(each, AliasPath) else each for each in choices), name]
