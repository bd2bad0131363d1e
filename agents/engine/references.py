"""References: what a run's secrets look like to everything but the function of the tool that is given one.

The input of a workflow may have secrets, fields typed `SecretStr`. Their values are kept aside, and the ledger has a
reference in place of each. To programs and to the rules of tools it looks like a SecretStr whose text is a marker. A
parameter of a tool that is typed SecretStr accepts it, and the value is put in where the tool's function runs.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON
from agents.engine.schema import input_names, parse, plain_json, problems
from agents.engine.secrets import is_reference, reference, references_in

Model = TypeVar("Model", bound=BaseModel)

FIELD_MOST = 100
"""Maximum length of the name of a field with a secret, in characters."""
MARK = "$secret:"
"""What the text of a SecretStr begins with that stands for a secret of the run; the name of its field follows."""
_SECRETS = (SecretStr, SecretBytes, Secret)


class OfRun(SecretStr):
    """A secret of the run, as programs and rules of tools see it: its text is a marker.

    Only `parse_marked` makes one. A text or an object that a model or a person wrote like a reference is none, wherever
    a program passes it on: else whoever writes what a program reads could have a secret sent anywhere.
    """


def marker(field: str) -> str:
    """Return the text that a program sees in place of the secret of this field."""
    return f"{MARK}{field}"


# Models with secrets


@cache
def secret_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields of a model that are typed `SecretStr`, or `SecretStr | None`."""
    return frozenset(name for name, field in model.model_fields.items() if _is_secret(field))


@cache
def secret_keys(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the names under which an input may give a secret, each with that of its field."""
    fields_of = ((name, model.model_fields[name]) for name in sorted(secret_fields(model)))
    return {str(key): name for name, field in fields_of for key in input_names(name, field)}


def _is_secret(field: FieldInfo) -> bool:
    return set(_types_in(field.annotation)) - {type(None)} == {SecretStr} and _is_plain(field.annotation)


def _is_plain(annotation: Any) -> bool:
    """Whether this is a type, or a union of types, perhaps annotated: no list of them."""
    annotation = _unwrapped(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return all(map(_is_plain, typing.get_args(annotation)))
    return isinstance(annotation, type) and typing.get_origin(annotation) is None


def _unwrapped(annotation: Any) -> Any:
    """Return what stands behind an alias and `Annotated`."""
    while (behind := getattr(annotation, "__value__", None)) is not None:
        annotation = behind
    if typing.get_origin(annotation) is typing.Annotated:
        return _unwrapped(typing.get_args(annotation)[0])
    return annotation


def _types_in(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation, such as those of a union and of the items of a list."""
    annotation = _unwrapped(annotation)
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for each in arguments:
        yield from _types_in(each)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and origin not in (typing.Union, types.UnionType):
        yield origin


def _holds_secrets(annotation: Any, seen: set[Any]) -> bool:
    """Whether values with this annotation may hold secrets, at any depth."""
    for each in _types_in(annotation):
        if not isinstance(each, type) or each in seen:
            continue
        seen.add(each)
        if issubclass(each, _SECRETS) or any(_holds_secrets(inner, seen) for inner in _annotations_of(each)):
            return True
    return False


def _annotations_of(each: type) -> Iterable[Any]:
    if issubclass(each, BaseModel):
        return [field.annotation for field in each.model_fields.values()]
    if is_dataclass(each) or typing.is_typeddict(each) or hasattr(each, "_fields"):
        try:
            return typing.get_type_hints(each, include_extras=True).values()
        except (NameError, TypeError):
            return ()
    return ()


def holds_secrets(model: type[BaseModel]) -> bool:
    """Whether a value of this model may hold secrets, at any depth."""
    return _holds_secrets(model, set())


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether this JSON Schema of a field says that it is a secret, or that or null."""
    if either := schema.get("anyOf"):
        return any(is_secret(each) for each in either if isinstance(each, dict))
    return schema.get("format") == "password" and schema.get("writeOnly") is True


def check_input(model: type[BaseModel], where: str) -> None:
    """Raise RegistryError if a secret stands in this input of a workflow where none can be replaced by a reference."""
    for name, field in model.model_fields.items():
        if name in secret_fields(model):
            _check_secret(name, field, where)
        elif _holds_secrets(field.annotation, set()):
            raise RegistryError(
                f"{where}: {name!r} holds a secret inside: make it a field of the input itself, typed SecretStr or"
                " SecretStr | None"
            )
    check_validators(model, where)


def _check_secret(name: str, field: FieldInfo, where: str) -> None:
    if len(name) > FIELD_MOST:
        raise RegistryError(f"{where}: the name of a secret has at most {FIELD_MOST} characters, not {name!r}")
    if field.default not in (PydanticUndefined, None) or field.default_factory:
        raise RegistryError(f"{where}: the secret {name!r} can have no default but None: code is no place for it")
    if not isinstance(field.validation_alias, str | None):
        raise RegistryError(f"{where}: the secret {name!r} can have one other name, as alias='...', and no path")


def check_validators(model: type[BaseModel], where: str) -> None:
    """Raise RegistryError for a validator of a secret: it would be given the marker."""
    found = model.__pydantic_decorators__
    validators: dict[str, Any] = {**found.validators, **found.field_validators}
    for name, each in validators.items():
        if watched := sorted(secret_fields(model) & set(each.info.fields)):
            raise RegistryError(
                f"{where}: the validator {name!r} looks at the secret {watched[0]!r}, and would see no more than a"
                " reference: say what it must be with Field(min_length=...) or Annotated, or look in the tool"
            )
        if "*" in each.info.fields and secret_fields(model):
            raise RegistryError(
                f"{where}: the validator {name!r} looks at all fields, also at secrets, of which it would see no more"
                " than references: name the fields that it looks at"
            )


# Payloads with references


def referring(model: type[BaseModel], payload: Mapping[str, JSON]) -> dict[str, str]:
    """Return the references in this payload that stand where the model has secrets, by key."""
    return {key: field for key, field in references_in(payload).items() if key in secret_keys(model)}


def marked(model: type[Model], payload: dict[str, JSON]) -> tuple[type[Model], dict[str, JSON]]:
    """Return the payload with a marker in place of each reference, and the model that accepts it.

    What the model wants of a secret holds for its value, so not for the marker.
    """
    found = referring(model, payload)
    if not found:
        return model, payload
    names = frozenset(secret_keys(model)[key] for key in found)
    return _accepting(model, names), payload | {key: marker(field) for key, field in found.items()}


@cache
def _accepting(model: type[Model], names: frozenset[str]) -> type[Model]:
    """Return the model with these secrets freed of what is wanted of them."""
    free: dict[str, Any] = {}
    for name in names:
        field = model.model_fields[name]
        typed = SecretStr | None if type(None) in _types_in(field.annotation) else SecretStr
        names_of = {each: getattr(field, each) for each in ("alias", "validation_alias", "serialization_alias")}
        like: Any = Field(default=field.default, **names_of)
        free[name] = (typed, like)
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **free)


def parse_marked(model: type[Model], payload: dict[str, JSON]) -> Model:
    """Parse a payload that may have references: they become markers. Raises pydantic's ValidationError."""
    accepting, given = marked(model, payload)
    read = parse(accepting, given)
    for key, field in referring(model, payload).items():
        read.__dict__[secret_keys(model)[key]] = OfRun(marker(field))  # the model may be frozen
    return read


def problems_marked(model: type[BaseModel], payload: dict[str, JSON]) -> list[tuple[str, str]]:
    """Return the problems with a payload that may have references, as `schema.problems` does."""
    misplaced = references_in(payload).keys() - referring(model, payload).keys()
    accepting, given = marked(model, {key: value for key, value in payload.items() if key not in misplaced})
    others = [(place, why) for place, why in problems(accepting, given) if place not in misplaced]
    return [*((place, ACCEPTS_NONE) for place in sorted(misplaced)), *others]


ACCEPTS_NONE = "takes no secret: only a field typed SecretStr does"
NEEDS_REFERENCE = "is a secret: pass one of the run's, such as flow.input.password"


def problems_of_run(model: type[BaseModel], input: dict[str, JSON]) -> list[tuple[str, str]]:
    """Return the problems with the recorded input of a workflow, in which all secrets are references."""
    open_ones = [key for key in secret_keys(model) if input.get(key) is not None and not is_reference(input[key])]
    others = problems_marked(model, {key: value for key, value in input.items() if key not in open_ones})
    return [*((key, NEEDS_REFERENCE) for key in open_ones), *(each for each in others if each[0] not in open_ones)]


def with_values(payload: dict[str, JSON], model: type[BaseModel], value: Callable[[str], str]) -> dict[str, JSON]:
    """Return the payload with the values of the secrets in place of the references."""
    return payload | {key: value(field) for key, field in referring(model, payload).items()}


def taken_out(model: type[BaseModel], input: dict[str, JSON]) -> tuple[dict[str, JSON], dict[str, str]]:
    """Return an input, which the model accepts, with references in place of its secrets, and the secrets by field.

    Their values are those that the model made of them.
    """
    read = parse(model, input)
    given = ((name, getattr(read, name)) for name in sorted(secret_fields(model)))
    secrets = {name: secret.get_secret_value() for name, secret in given if secret is not None}
    referring = {key: reference(name) for key, name in secret_keys(model).items() if key in input and name in secrets}
    return input | referring, secrets


# What programs pass on


def payload_json(value: object, where: str) -> tuple[Any, frozenset[str]]:
    """Return what a program gives to a call as JSON, with a reference for each of the run's secrets at its top.

    With it come the keys of these. Raises TypeError for any other secret: its value would be recorded.
    """
    given = _secrets_at_top(value)
    found = {key: _field_of(secret) for key, secret in given.items()}
    if other := [key for key, field in found.items() if field is None] or list(_secrets_below(value)):
        raise TypeError(
            f"{where}: {other[0]!r} is a secret that is not the run's, so its value would be recorded: pass one of the"
            " workflow's own input, such as flow.input.password, as a parameter of its own; or let the tool find it,"
            " such as with call.services['vault']"
        )
    if not found:
        return plain_json(value, where), frozenset()
    if isinstance(value, Mapping):
        left = plain_json({key: each for key, each in value.items() if key not in found}, where)
    else:
        left = plain_json(value, where)
    return left | {key: reference(str(field)) for key, field in found.items()}, frozenset(found)


def referred(value: object, where: str) -> object:
    """Return a reference in place of a secret of the run; anything else as it is. Raises TypeError as payload_json."""
    return payload_json({where: value}, "a payload")[0][where] if isinstance(value, _SECRETS) else value


def _field_of(secret: Any) -> str | None:
    """Return the field that this marker stands for; None for any other secret."""
    return str(secret.get_secret_value()).removeprefix(MARK) if isinstance(secret, OfRun) else None


def _secrets_at_top(value: object) -> dict[str, Any]:
    """Return the secrets in a dict or a model itself, by the key under which they are written."""
    if isinstance(value, BaseModel):
        named = [(field.serialization_alias or name, name) for name, field in type(value).model_fields.items()]
        return {key: each for key, name in named if isinstance(each := getattr(value, name), _SECRETS)}
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if isinstance(each, _SECRETS)}
    return {}


def _secrets_below(value: object) -> Iterator[str]:
    """Yield the keys in the value at which secrets stand that no reference can replace, at any depth."""
    for key, each in _parts(value):
        if not isinstance(each, _SECRETS):
            yield from _secrets_within(each, str(key))


def _secrets_within(value: object, where: str) -> Iterator[str]:
    if isinstance(value, _SECRETS):
        yield where
    for _, each in _parts(value):
        yield from _secrets_within(each, where)


def _parts(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, BaseModel):
        return [(name, getattr(value, name)) for name in type(value).model_fields]
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple | set | frozenset):
        return enumerate(value)
    if is_dataclass(value):
        return [(each.name, getattr(value, each.name)) for each in fields(value)]
    return ()
