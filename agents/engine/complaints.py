"""What is wrong with a value, in plain words: what to give instead. People read them at fields, and models in results.

Pydantic, JSON Schema and the forms of the pages each find out in their own way what is wrong; this is how all of them
say it. A complaint is a phrase without a full stop: what shows it to a person makes a `sentence` of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic_core.core_schema import ErrorType

REQUIRED = "Field required"
NOTHING_TO_CHOOSE = "There is nothing to choose from"
NOT_ACCEPTED = "This is not accepted here"
Place = Sequence[int | str]


def sentence(complaint: str) -> str:
    """Return a complaint as a sentence. The words of whoever wrote a check may be one already."""
    return f"{complaint[:1].upper()}{complaint[1:]}{'' if complaint.endswith(('.', '!', '?', '…')) else '.'}"


def of_pydantic(error: Mapping[str, Any]) -> str:
    """Return the complaint for one of the `errors()` of a ValidationError."""
    context: Mapping[str, Any] = error.get("ctx", {})
    kind = str(error["type"])
    words = _KINDS.get(kind) or (NOT_ACCEPTED if kind in _OF_PYDANTIC else str(error["msg"]))
    match kind:
        case "too_long" | "too_short":
            limit = context.get("max_length" if kind == "too_long" else "min_length")
            words = items(kind == "too_long", limit, context.get("actual_length"), error["loc"])
        case "string_too_long" | "string_too_short":
            given = error.get("input")
            limit = context.get("max_length" if kind == "string_too_long" else "min_length")
            words = characters(kind == "string_too_long", limit, len(given) if isinstance(given, str) else None)
        case "literal_error" | "enum":
            words = f"Choose {_in_json_words(context['expected'])}" if context["expected"] else NOTHING_TO_CHOOSE
        case "union_tag_invalid" if context["expected_tags"]:
            words = f"Choose one of {_in_json_words(context['expected_tags'])} as {context['discriminator']}"
        case "string_pattern_mismatch":
            words = _pattern(context["pattern"]) if "pattern" in context else str(error["msg"])
        case "value_error" | "assertion_error":  # the words of whoever wrote the check
            words = str(context.get("error", error["msg"])) or NOT_ACCEPTED
        case _ if kind in _BOUNDS:
            words = _bounded(kind, next(iter(context.values())))
        case _ if kind in _DIGITS:
            words = _DIGITS[kind].format(next(iter(context.values())))
    return words


def of_json_schema(keyword: str, demanded: Any, given: Any, message: str, place: Place) -> str:
    """Return the complaint for a value that does not fulfil a keyword of JSON Schema. `message`: the validator's own.

    `demanded` is the value of the keyword, `given` the value that was checked, and `place` where it stands.
    """
    words = _KEYWORDS.get(keyword, NOT_ACCEPTED)
    match keyword:
        case "type":
            words = _of_types([demanded] if isinstance(demanded, str) else demanded)
        case "const":
            words = _TYPES["null"] if demanded is None else f"Choose {one_of([demanded])}"
        case "enum" if not demanded:
            words = NOTHING_TO_CHOOSE
        case "enum" if len(demanded) <= CHOICES_MOST:
            words = f"Choose {one_of(demanded)}"
        case "minItems" | "maxItems":
            words = items(keyword == "maxItems", demanded, len(given), place)
        case "minProperties" | "maxProperties":
            words = items(keyword == "maxProperties", demanded, len(given), ("fields",))
        case "minLength" | "maxLength":
            words = characters(keyword == "maxLength", demanded, len(given))
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
            words = _bounded(keyword, demanded)
        case "pattern":
            words = _pattern(demanded)
        case "format":
            words = f"Enter a value in the format {demanded!r}"
        case "dependentRequired":  # it tells one field at a time
            pairs = ((name, needed) for name, others in demanded.items() for needed in others)
            told = (pair for pair in pairs if message == f"{pair[1]!r} is a dependency of {pair[0]!r}")
            words = next((f"Give {needed!r} too, because {name!r} is given" for name, needed in told), words)
    return words


def unknown(names: Iterable[str], known: Iterable[str]) -> tuple[str, str]:
    """Return the place of fields that are not known, which names the first of them, and the complaint about them."""
    given, there = list(names), ", ".join(sorted(known))
    first = [name if len(name) <= NAME_MOST else f"{name[: NAME_MOST - 1]}…" for name in given[:UNKNOWN_MOST]]
    more = [f"and {len(given) - UNKNOWN_MOST:,} more"] if len(given) > UNKNOWN_MOST else []
    why = f"not known; there are: {there}" if there else "not known; there are no fields here"
    return ", ".join([*first, *more]), why


UNKNOWN_MOST = 10
"""How many fields that are not known are named at most."""
NAME_MOST = 100
"""The most characters of the name of a field that is not known."""

CHOICES_MOST = 20
"""How many choices are listed at most."""


def one_of(choices: Sequence[Any]) -> str:
    """Return choices in words: "'bar' or 'line'"."""
    return _either([repr(each) if isinstance(each, str) else _in_json(each) for each in choices])


def _in_json(value: Any) -> str:
    words = json.dumps(value, ensure_ascii=False)
    return {"[]": "an empty list", "{}": "an empty object"}.get(words, words)


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _in_json_words(expected: str) -> str:
    """Return choices that pydantic lists as JSON writes them: null for None, and the value of a member of an enum."""
    return _CHOICE.sub(lambda found: _JSON_WORDS.get(found[0], found["member"] or found[0]), expected)


_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_CHOICE = re.compile(rf"<[\w.]+: (?P<member>{_TEXT}|[^>]*)>|{_TEXT}|\b(?:None|True|False)\b")
"""A choice as Python writes it. A text is one as a whole, whatever words it has."""
_JSON_WORDS = {"None": "null", "True": "true", "False": "false"}


def _of_types(types: Sequence[str]) -> str:
    """Return the complaint about a value of another type than these."""
    phrases = [_TYPES[each].split(" ", 1) for each in types if each != "null"]
    if not phrases:
        return _TYPES["null"]
    named = _either([what for _, what in phrases])
    return f"{phrases[0][0]} {named}{', or leave this empty' if 'null' in types else ''}"


def _bounded(kind: str, bound: Any) -> str:
    """Return the complaint about a value beyond a bound, which pydantic tells as text if it is no number."""
    if not isinstance(bound, str):
        return f"Enter a number {_BOUNDS[kind].format(figure(bound))}"
    if moment := re.match(r"(?P<day>\d{4}-\d\d-\d\d)|\d\d:\d\d:\d\d", bound):
        return f"Enter a value {_MOMENTS[kind].format(bound, on='on' if moment['day'] else 'at')}"
    return f"Enter a value {_BOUNDS[kind].format(bound)}"


def _pattern(pattern: str) -> str:
    return f"Enter a text that matches the pattern {pattern}"


def items(too_many: bool, limit: int | None, count: int | None, place: Place = ()) -> str:
    """Return the complaint about a list that has too many or too few items. They are called as its field is."""
    named = str(place[-1]).replace("_", " ") if place and isinstance(place[-1], str) else ""
    plural = limit != 1 and named.endswith("s") and not named.endswith(("ss", "us", "is"))
    noun = f" {named}" if plural else ""
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
_MOMENTS = {
    "greater_than_equal": "{on} or after {}",
    "greater_than": "after {}",
    "less_than_equal": "{on} or before {}",
    "less_than": "before {}",
}
"""What _BOUNDS are of dates and times."""
_KEYWORDS = {
    "enum": "This is not one of the choices",
    "uniqueItems": "List each only once",
    "contains": "Add an item of the kind that is needed in this list",
    "minContains": "Add more items of the kind that is needed in this list",
    "maxContains": "Remove some of the items of the kind that is limited in this list",
    "unevaluatedProperties": "There are fields here that are not known",
    "unevaluatedItems": "There are more items than this list may have",
    "items": "There are more items than this list may have",
    "dependentRequired": "A field that belongs to another is missing",
}
"""By the keywords of JSON Schema."""
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
_WEB = "Enter a web address, such as https://example.com/"
_KINDS = {
    **dict.fromkeys(
        ("missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"), REQUIRED
    ),
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), "There is no such field"),
    **dict.fromkeys(("string_type", "string_sub_type", "string_unicode", "bytes_type"), _TYPES["string"]),
    "string_not_ascii": "Enter only unaccented letters, digits and signs (ASCII)",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _TYPES["integer"]),
    **dict.fromkeys(
        ("float_type", "float_parsing", "finite_number", "decimal_type", "decimal_parsing"), _TYPES["number"]
    ),
    **dict.fromkeys(("bool_type", "bool_parsing"), _TYPES["boolean"]),
    **dict.fromkeys(
        ("list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type", "iterable_type"), _TYPES["array"]
    ),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type", "named_tuple_type"),
        _TYPES["object"],
    ),
    "none_required": _TYPES["null"],
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"), _DATE),
    "date_past": "Enter a date in the past",
    "date_future": "Enter a date in the future",
    **dict.fromkeys(("time_type", "time_parsing"), _TIME),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_object_invalid", "datetime_from_date_parsing"), _BOTH
    ),
    "datetime_past": "Enter a date and a time in the past",
    "datetime_future": "Enter a date and a time in the future",
    "timezone_aware": "Include the time zone, such as 2026-11-30T09:30+01:00",
    "timezone_naive": "Leave out the time zone, as in 2026-11-30T09:30",
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), "Enter a length of time, such as PT1H30M"),
    **dict.fromkeys(("url_type", "url_parsing", "url_syntax_violation", "url_scheme"), _WEB),
    **dict.fromkeys(
        ("uuid_type", "uuid_parsing", "uuid_version"), "Enter a UUID, such as 0b9e0b2e-6f0e-4d8e-9f60-3f5f1a0c7d11"
    ),
    **dict.fromkeys(("json_type", "json_invalid"), "Enter valid JSON"),
}
"""By the types of pydantic's errors."""
_DIGITS = {
    "bytes_too_short": "Give at least {} bytes",
    "bytes_too_long": "Give at most {} bytes",
    "url_too_long": "Enter at most {} characters",
    "decimal_max_digits": "Enter a number with at most {} digits",
    "decimal_max_places": "Enter a number with at most {} digits after the decimal point",
    "decimal_whole_digits": "Enter a number with at most {} digits before the decimal point",
}
_OF_PYDANTIC = frozenset(get_args(ErrorType))
"""The types of pydantic's own errors; the words of all others are an author's."""
