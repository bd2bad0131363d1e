"""Parsing what was typed into a generated form: numbers, choices by their names, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agents.engine.ledger import JSON

_DECIMAL = r"-?\d{1,400}(\.\d+)?([eE][+-]?\d{1,3})?"


class Wrong(ValueError):
    """What was typed is invalid; the message says why."""


def label_of(option: JSON) -> str:
    """Return the label of a value."""
    if isinstance(option, bool):
        return "Yes" if option else "No"
    return option if isinstance(option, str) else "none" if option is None else json.dumps(option)


def is_decimal(value: JSON) -> bool:
    """Whether a value is a number, or a text that is one."""
    return type(value) in (int, float) or (
        isinstance(value, str) and re.fullmatch(_DECIMAL, value, re.ASCII) is not None
    )


def number_of(text: str, *, whole: bool) -> JSON:
    """Return the number that was typed. Raises Wrong."""
    if not re.fullmatch(r"-?\d{1,400}" if whole else _DECIMAL, text, re.ASCII):
        raise Wrong("Enter a whole number." if whole else "Enter a number.")
    found = float(text) if re.search("[.eE]", text) else int(text)
    if found in (float("inf"), float("-inf")):
        raise Wrong("This number is too large.")
    return found


def option_of(text: str, options: Sequence[JSON]) -> JSON:
    """Return the choice with this JSON. Raises Wrong."""
    for option in options:
        if json.dumps(option) == text:
            return option
    raise Wrong("This is not one of the choices.")


def option_called(text: str, options: Sequence[JSON]) -> JSON:
    """Return the choice with this label, typed in capitals or not. Raises Wrong."""
    exact = [option for option in options if label_of(option) == text]
    found = exact or [option for option in options if label_of(option).casefold() == text.strip().casefold()]
    if len(found) != 1:
        raise Wrong("This is not one of the choices. Type part of one, and choose it from the list.")
    return found[0]


def by_any_name(options: Sequence[JSON], text: str) -> str:
    """Return the choice that this text means, as a form sends it; the text if it means none."""
    known = {json.dumps(option): option for option in options}
    if text in known:
        return text
    by_text = (told for told, option in known.items() if option == text)
    by_label = (told for told, option in known.items() if label_of(option).casefold() == text.casefold())
    return next(by_text, None) or next(by_label, None) or text


def json_of(text: str) -> JSON:
    """Return the JSON that was typed, if it can be recorded as it is. Raises Wrong."""

    def refuse(word: str) -> JSON:
        raise Wrong(f"{word} is not valid JSON.")

    try:
        found = json.loads(text, parse_constant=refuse, object_pairs_hook=_object)
        json.dumps(found, allow_nan=False)
    except Wrong:
        raise
    except json.JSONDecodeError as error:
        raise Wrong(f"This is not valid JSON: {error.msg}, line {error.lineno}, column {error.colno}.") from error
    except (ValueError, RecursionError) as error:
        raise Wrong("This JSON has a number that is too large, or is nested too deeply.") from error
    return found


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Wrong("An object has the same name twice.")
    return found
