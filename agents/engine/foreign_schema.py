"""Schemas from strangers: JSON Schemas that a client of the site sent, which cost no more than they should."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import re2
from jsonschema import ValidationError as Invalid
from jsonschema.validators import extend

from agents.engine.ledger import JSON, canonical
from agents.engine.schema import SchemaChecker, check_schema, schema_problems

BYTES_MOST = 32_768
"""Bytes of such a schema: the model is sent it with every round."""
CHECKS_MOST = 100_000
"""Keywords that are checked for one value. Without a bound, twenty references that double each other take a minute."""
REFERENCE = 10
"""The keywords that a reference counts as: following it takes as long."""
ENUM_AT_ONCE = 10
"""Values of an `enum` that count as one keyword: a long one takes its time."""
NOT_TAKEN = ("patternProperties", "$dynamicRef", "$id", "unevaluatedProperties", "unevaluatedItems")
"""Keywords that such a schema may not have: regular expressions for names, references that lead elsewhere, and those
that check what others have checked: nested twenty deep, they would take for ever."""
PATTERNS_KEPT = 64
"""Compiled regular expressions that are kept for the next value."""

Check = Callable[[Any, Any, Any, Any], Iterable[Invalid] | None]
"""The check of a keyword, as jsonschema has it."""

_checked: ContextVar[list[int]] = ContextVar("checked")


class TooMuchToCheck(Exception):
    """A value was not checked to its end, because the schema asks for too much."""


def check_foreign_schema(schema: dict[str, JSON]) -> None:
    """Raise ValueError, with the reason, unless this is a schema of an object that can be checked safely."""
    if schema.get("type") != "object":
        raise ValueError('the schema must be that of an object, with "type": "object" at its top')
    if (size := len(canonical(schema))) > BYTES_MOST:
        raise ValueError(f"the schema may have at most {BYTES_MOST:,} bytes, and has {size:,}")
    for keyword, value in _keywords(schema):
        if keyword in NOT_TAKEN:
            raise ValueError(f"the schema has {keyword!r}, which is not taken here")
        if keyword == "pattern" and isinstance(value, str):
            _compiled(value)
    try:
        check_schema(schema)
    except TypeError as error:
        raise ValueError(str(error)) from error


def foreign_problems(schema: dict[str, JSON], payload: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the first problems with `payload` under such a schema, as `schema.problems` does."""
    token = _checked.set([0])
    try:
        return schema_problems(schema, payload, _Checker)
    except TooMuchToCheck:
        return [("", "cannot be checked: its schema asks for too many checks of this value")]
    finally:
        _checked.reset(token)


def _keywords(schema: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield every key in a schema with its value, also those that are names of fields: it errs on the safe side."""
    inside = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for key, value in inside:
        if isinstance(key, str):
            yield key, value
        yield from _keywords(value)


@lru_cache(PATTERNS_KEPT)
def _compiled(pattern: str) -> re2.Pattern[str]:
    """Return a regular expression of RE2, which takes linear time. Raises ValueError."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"the pattern {pattern!r} cannot be used: write it for RE2, without look-around") from error


def _pattern(_checker: object, pattern: str, text: JSON, _schema: JSON) -> Iterator[Invalid]:
    if isinstance(text, str) and not _compiled(pattern).search(text):
        yield Invalid(f"{text!r} does not match {pattern!r}")


def _counted(keyword: str, check: Check) -> Check:
    """Return the check of a keyword, which is given up when the value has been checked for too long."""

    def counting(checker: Any, argument: JSON, value: JSON, schema: JSON) -> Iterable[Invalid] | None:
        counted = _checked.get()
        counted[0] += REFERENCE if keyword == "$ref" else 1
        counted[0] += len(argument) // ENUM_AT_ONCE if keyword == "enum" else 0
        if counted[0] > CHECKS_MOST:
            raise TooMuchToCheck
        return check(checker, argument, value, schema)

    return counting


_CHECKS: dict[str, Check] = {**SchemaChecker.VALIDATORS, "pattern": _pattern}
_Checker = extend(SchemaChecker, {keyword: _counted(keyword, check) for keyword, check in _CHECKS.items()})
