"""Values of generated forms: the kind of field that can carry a value exactly, its text there, and parsing it back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.references import is_secret
from agents.engine.secrets import is_reference
from conversations.approvals.edits import same_json
from conversations.display.faithful import spelled_out, unseen
from conversations.display.value import ANY, as_text

LINE_MOST = 72
"""Maximum length of a text that is edited in one line, in characters."""

ABSENT: Any = object()
"""The value of a name that an input does not have."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


SPELLED = ("line", "text", "lines", "json")
"""The kinds of fields into which people can paste invisible or misleading characters."""


class Wrong(ValueError):
    """What was typed is invalid; the message says why."""


@dataclass(frozen=True)
class ValuePlace:
    """One name of an input: its schema, unwrapped, and its value or ABSENT."""

    schema: Mapping[str, Any]
    value: JSON
    required: bool
    nullable: bool

    @property
    def empty(self) -> bool:
        """Whether its field is empty."""
        return self.value is ABSENT or (self.value is None and self.nullable)

    @property
    def options(self) -> list[JSON] | None:
        """The values to choose from, None where anything may stand."""
        found = self.schema.get("enum")
        if found is None and "const" in self.schema:
            found = [self.schema["const"]]
        if found is None and self.schema.get("type") == "boolean":
            found = [True, False]
        return None if found is None else [*found, *([None] if self.nullable and None not in found else [])]

    def kind(self, code: bool) -> str:
        """The simplest field that carries the value exactly. One for a secret shows nothing of what is typed."""
        wanted, value = self.schema.get("type"), self.value
        if is_reference(value) or (self.empty and is_secret(self.schema)):
            return "secret" if self.empty else "kept"
        if (options := self.options) is not None:
            known = value is ABSENT or any(same_json(value, option) for option in options)
            return "choice" if known else "json"
        if wanted == "string" and (self.empty or (isinstance(value, str) and _typed(value))):
            short = self.empty or ("\n" not in value and len(value) <= LINE_MOST)
            return "line" if short and not code else "text"
        if wanted in ("integer", "number") and (self.empty or type(value) in (int, float)):
            return "number"
        if wanted == "array" and self._of_strings:
            return "lines" if value is ABSENT or (isinstance(value, list) and all(map(_listed, value))) else "json"
        return "json"

    @property
    def _of_strings(self) -> bool:
        items = self.schema.get("items")
        return isinstance(items, dict) and items.get("type") == "string" and "enum" not in items

    def text(self, kind: str) -> str:
        """Return the value's text in a field of this kind."""
        value = self.value
        if is_reference(value):
            return as_text(value, ANY)
        if kind == "choice":
            return "" if value is ABSENT else json.dumps(value)
        if value is ABSENT or (value is None and kind != "json"):
            return ""
        if kind == "lines" and isinstance(value, list):
            return "\n".join(value)
        return value if kind in ("line", "text") and isinstance(value, str) else spelled_out(value)

    def read(self, kind: str, text: str) -> JSON:
        """Return the value that was typed; unchanged text returns the original value. Raises Wrong."""
        if is_reference(self.value):
            return self.value
        if text == self.text(kind):
            return self._untouched(kind)
        if kind in SPELLED and unseen(text):
            raise Wrong("This has invisible or misleading characters, now shown as escapes: please check them.")
        if kind == "lines":
            return [line for line in text.split("\n") if line.strip()]
        if kind in ("line", "text", "secret"):
            return None if not text and self.nullable else text
        return self._parsed(kind, text) if text.strip() else self._nothing(kind)

    def _untouched(self, kind: str) -> JSON:
        if self.value is not ABSENT or not self.required:
            return self.value
        return [] if kind == "lines" else self._nothing(kind)

    def _parsed(self, kind: str, text: str) -> JSON:
        if kind == "number":
            return _number(text.strip(), whole=self.schema.get("type") == "integer")
        return _chosen(text, self.options or []) if kind == "choice" else _json(text)

    def _nothing(self, kind: str) -> JSON:
        if not self.required:
            return ABSENT
        if self.nullable and kind in ("line", "text", "number", "secret"):
            return None
        raise Wrong("Enter a value.")


def _typed(text: str) -> bool:
    """Whether a person can type this text and see all of it, and browsers send it back unchanged."""
    return not _CONTROL.search(text) and not unseen(text)


def _listed(item: JSON) -> bool:
    return isinstance(item, str) and bool(item.strip()) and "\n" not in item and _typed(item)


def label_of(option: JSON) -> str:
    """Return the label of a value."""
    if isinstance(option, bool):
        return "Yes" if option else "No"
    return option if isinstance(option, str) else "none" if option is None else json.dumps(option)


def _number(text: str, *, whole: bool) -> JSON:
    pattern = r"-?\d{1,400}" if whole else r"-?\d{1,400}(\.\d+)?([eE][+-]?\d{1,3})?"
    if not re.fullmatch(pattern, text, re.ASCII):
        raise Wrong("Enter a whole number." if whole else "Enter a number.")
    found = float(text) if re.search("[.eE]", text) else int(text)
    if found in (float("inf"), float("-inf")):
        raise Wrong("This number is too large.")
    return found


def _chosen(text: str, options: Sequence[JSON]) -> JSON:
    for option in options:
        if json.dumps(option) == text:
            return option
    raise Wrong("This is not one of the choices.")


def _json(text: str) -> JSON:
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
