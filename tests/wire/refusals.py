"""Refusals: errors in the API's shape, and the checks that requests and histories share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from agents.engine.ledger import JSON

NAME = re.compile(r"[A-Za-z0-9_-]+")
NAME_CHARACTERS, MODEL_CHARACTERS = 64, 256

TYPES: dict[type, str] = {str: "a string", list: "an array", dict: "an object", bool: "a boolean"}


class RequestError(Exception):
    """An invalid request: the API's message, the parameter that it is about, and its code, which may be None."""

    def __init__(self, message: str, param: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.param, self.code = message, param, code


def error_body(message: str, code: str | None, *, kind: str = "invalid_request_error", param: str = "") -> JSON:
    """Return an error in the API's shape."""
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code}}


def required(value: dict[str, JSON], name: str, kind: type, where: str = "") -> JSON:
    """Return `value[name]`. Raises RequestError if it is missing or not a `kind`."""
    if isinstance(found := value.get(name), kind):
        return found
    place = f"{where}.{name}" if where else name
    if name not in value:
        raise RequestError(f"Missing required parameter: '{place}'.", place, "missing_required_parameter")
    raise RequestError(f"Invalid type for '{place}': expected {TYPES[kind]}.", place, "invalid_type")


def optional(value: dict[str, JSON], name: str, kind: type) -> None:
    """Raise RequestError if `value[name]` is there and neither null nor a `kind`."""
    if value.get(name) is not None:
        required(value, name, kind)


def check_not_empty(value: list[JSON], place: str) -> None:
    """Raise RequestError if the array at `place` is empty."""
    if not value:
        message = (
            f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        raise RequestError(message, place, "empty_array")


def quote_all(values: Iterable[str]) -> str:
    """Return the values in quotes and sorted, as a message lists them."""
    return ", ".join(f"'{value}'" for value in sorted(values))


def checked_body(given: JSON, parameters: Set[str]) -> dict[str, JSON]:
    """Return the body of a request. Raises RequestError unless it is an object with known parameters and a model."""
    if not isinstance(given, dict):
        raise RequestError("We could not parse the JSON body of your request: it is not an object.", "")
    check_keys(given, parameters)
    check_length(required(given, "model", str), "model", MODEL_CHARACTERS)
    return given


def check_keys(value: dict[str, JSON], known: Set[str], where: str = "") -> None:
    """Raise RequestError if `value` has a key that is not `known`."""
    if not value.keys() <= known:
        name = min(value.keys() - known)
        place = f"{where}.{name}" if where else name
        raise RequestError(f"Unknown parameter: '{place}'.", place, "unknown_parameter")


def check_length(text: str, place: str, longest: int) -> None:
    """Raise RequestError unless `text` has 1 to `longest` characters."""
    if not text:
        expected = "Expected a string with minimum length 1, but got an empty string instead."
        raise RequestError(f"Invalid '{place}': empty string. {expected}", place, "empty_string")
    if len(text) > longest:
        message = (
            f"Invalid '{place}': string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(text)} instead."
        )
        raise RequestError(message, place, "string_above_max_length")


def check_name(value: dict[str, JSON], where: str) -> str:
    """Return the name of a tool. Raises RequestError unless it is 1 to 64 letters, digits, `_` and `-`."""
    name, place = required(value, "name", str, where), f"{where}.name"
    check_length(name, place, NAME_CHARACTERS)
    if not NAME.fullmatch(name):
        message = f"Invalid '{place}': string does not match pattern. Expected it to match '^[a-zA-Z0-9_-]+$'."
        raise RequestError(message, place, "invalid_value")
    return str(name)
