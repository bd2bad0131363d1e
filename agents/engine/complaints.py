"""What is wrong with a value, in plain words: what to give instead. People read them at fields, and models in results.

Pydantic, JSON Schema and the forms of the pages each find out in their own way what is wrong; this is how all of them
say it. A complaint is a phrase without a full stop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

REQUIRED = "Field required"
Place = Sequence[int | str]


def of_pydantic(error: Mapping[str, Any]) -> str:
    """Return the complaint for one of the `errors()` of a ValidationError."""
    context: Mapping[str, Any] = error.get("ctx", {})
    kind = str(error["type"])
    if kind in ("too_long", "too_short"):
        most = context.get("max_length" if kind == "too_long" else "min_length")
        return items(kind == "too_long", most, context.get("actual_length"), error["loc"])
    if kind in ("string_too_long", "string_too_short"):
        given = error.get("input")
        most = context.get("max_length" if kind == "string_too_long" else "min_length")
        return characters(kind == "string_too_long", most, len(given) if isinstance(given, str) else None)
    if kind in _BOUNDS:
        return f"Enter a number {_BOUNDS[kind].format(figure(next(iter(context.values()))))}"
    if kind in ("literal_error", "enum"):
        return f"Choose {context['expected']}"
    if kind in ("value_error", "assertion_error"):  # the words of whoever wrote the check
        return str(error["msg"]).partition(", ")[2] or str(error["msg"])
    return _KINDS.get(kind) or re.sub("^Input should", "It should", str(error["msg"]))


def of_json_schema(keyword: str, demanded: Any, given: Any, message: str, place: Place) -> str:
    """Return the complaint for a value that does not fulfil a keyword of JSON Schema. `message`: the validator's own.

    `demanded` is the value of the keyword, `given` the value that was checked, and `place` where it stands.
    """
    words = message
    match keyword:
        case "type" if isinstance(demanded, str):
            words = _TYPES.get(demanded, message)
        case "enum":
            words = f"Choose {one_of(demanded)}" if len(demanded) <= CHOICES_MOST else "This is not one of the choices"
        case "minItems" | "maxItems":
            words = items(keyword == "maxItems", demanded, len(given), place)
        case "minLength" | "maxLength":
            words = characters(keyword == "maxLength", demanded, len(given))
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
            words = f"Enter a number {_BOUNDS[keyword].format(figure(demanded))}"
        case "uniqueItems":
            words = "Give each only once"
        case "anyOf" | "oneOf":
            words = "This is none of what is accepted here"
    return words


CHOICES_MOST = 20
"""How many choices are listed at most."""


def one_of(choices: Sequence[Any]) -> str:
    """Return choices in words: "'bar' or 'line'"."""
    *others, last = (repr(each) for each in choices)
    return f"{', '.join(others)} or {last}" if others else last


def items(too_many: bool, limit: int | None, count: int | None, place: Place = ()) -> str:
    """Return the complaint about a list that has too many or too few items. They are called as its field is."""
    named = str(place[-1]).replace("_", " ") if place and isinstance(place[-1], str) else ""
    noun = f" {named}" if named.endswith("s") else ""
    there = "" if count is None else f"; there {'is' if count == 1 else 'are'} {count:,}"
    if too_many:
        return f"Give at most {limit:,}{noun}{there}"
    return "Give at least one" if limit == 1 else f"Give at least {limit:,}{noun}{there}"


def characters(too_many: bool, limit: int | None, count: int | None) -> str:
    """Return the complaint about a text that is too long or too short."""
    if too_many:
        return f"Enter at most {limit:,} character{'' if limit == 1 else 's'}" + (
            "" if count is None else f"; this has {count:,}"
        )
    return "Enter a value" if limit == 1 else f"Enter at least {limit:,} characters"


def figure(number: Any) -> str:
    """Return a number without needless digits: 5 for 5.0."""
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer() and abs(number) < 1e15)
    return f"{int(number):,}" if whole else f"{number}"


_BOUNDS = {
    "greater_than_equal": "that is {} or more",
    "greater_than": "that is more than {}",
    "less_than_equal": "that is {} or less",
    "less_than": "that is less than {}",
    "multiple_of": "in steps of {}",
    "minimum": "that is {} or more",
    "exclusiveMinimum": "that is more than {}",
    "maximum": "that is {} or less",
    "exclusiveMaximum": "that is less than {}",
    "multipleOf": "in steps of {}",
}
_TYPES = {
    "string": "Enter a text",
    "integer": "Enter a whole number",
    "number": "Enter a number",
    "boolean": "Enter true or false",
    "array": "Give a list",
    "object": "Give an object with fields",
    "null": "Leave this empty",
}
"""By the names of JSON Schema."""
_DATE = "Enter a date as year-month-day, such as 2026-11-30"
_TIME = "Enter a time, such as 09:30"
_BOTH = "Enter a date and a time, such as 2026-11-30T09:30"
_KINDS = {
    "missing": REQUIRED,
    "extra_forbidden": "There is no such field",
    **dict.fromkeys(("string_type", "string_sub_type"), _TYPES["string"]),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _TYPES["integer"]),
    **dict.fromkeys(
        ("float_type", "float_parsing", "finite_number", "decimal_type", "decimal_parsing"), _TYPES["number"]
    ),
    **dict.fromkeys(("bool_type", "bool_parsing"), _TYPES["boolean"]),
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), _TYPES["array"]),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "dataclass_type"), _TYPES["object"]),
    "none_required": _TYPES["null"],
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), _DATE),
    **dict.fromkeys(("time_type", "time_parsing"), _TIME),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _BOTH),
    "timezone_aware": "Say the time zone, as in 2026-11-30T09:30+01:00",
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), "Enter a length of time, such as PT1H30M"),
    **dict.fromkeys(("url_type", "url_parsing", "url_scheme"), "Enter a web address, such as https://example.com/"),
}
"""By the types of pydantic's errors."""
