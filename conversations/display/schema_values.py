"""Values of generated forms: the kind of field that can carry a value exactly, its text there, and parsing it back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.references import is_secret
from agents.engine.secrets import is_reference
from conversations.approvals.edits import same_json
from conversations.display.faithful import spelled_out, unseen
from conversations.display.schema_checks import complaint
from conversations.display.schema_parsing import (
    Wrong,
    by_any_name,
    is_decimal,
    json_of,
    label_of,
    number_of,
    option_called,
    option_of,
)
from conversations.display.schema_shapes import unwrapped
from conversations.display.schema_times import TIMES, BadTime, local_and_zone, read_time, time_text
from conversations.display.value import ANY, as_text

LINE_MOST = 72
"""Maximum length of a text that is edited in one line, in characters."""
SEARCHED_FROM = 30
"""Choices from which on one types to find one, instead of looking through all."""
LONG_FROM = 200
"""A text that may be longer than this, in characters, is typed into several lines from the beginning."""

ABSENT: Any = object()
"""The value of a name that an input does not have."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

SPELLED = ("line", "text", "lines", "json", "url", "email", "file", "workspace-file", "workspace-folder")
"""The kinds of fields into which people can paste invisible or misleading characters."""
IN_A_LINE = ("line", "url", "email", "file", "workspace-file", "workspace-folder")
"""The kinds of fields with a text in one line."""
FORMATS = {
    "uri": "url",
    "email": "email",
    "uploaded-file": "file",
    "workspace-file": "workspace-file",
    "workspace-folder": "workspace-folder",
}
"""The kind of field for a text, by the format that its schema names."""
TYPED_KINDS = (*SPELLED, *TIMES.values(), "number", "choice", "search", "choices", "secret")
"""All kinds of fields for a single value into which something is typed or chosen."""
LISTED = (*IN_A_LINE, "text", "number", *TIMES.values())
"""The kinds of fields whose values can stand in a line each."""


@dataclass(frozen=True)
class ValuePlace:
    """One name of an input: its schema, unwrapped, and its value or ABSENT. `named`: the `$defs` of the schema."""

    schema: Mapping[str, Any]
    value: JSON
    required: bool
    nullable: bool
    named: Mapping[str, Any]

    @property
    def empty(self) -> bool:
        """Whether its field is empty."""
        return self.value is ABSENT or (self.value is None and self.nullable)

    @property
    def default(self) -> JSON:
        """What is taken if the field is left out; ABSENT if nothing is known of that."""
        return self.schema.get("default", ABSENT)

    @property
    def default_label(self) -> str:
        """What is taken if the field is left out, in words; "" if that is nothing."""
        if self.default in (ABSENT, None, "", [], {}):
            return ""
        if isinstance(self.default, list) and all(isinstance(each, str) for each in self.default):
            return ", ".join(self.default)
        timed = TIMES.get(str(self.schema.get("format")))
        text = time_text(timed, self.default) if timed and isinstance(self.default, str) else None
        return text.removesuffix(":00") if text and timed == "time" else text or label_of(self.default)

    @property
    def options(self) -> list[JSON] | None:
        """The values to choose from, None where anything may stand."""
        found = _options(self.schema)
        return None if found is None else [*found, *([None] if self.nullable and None not in found else [])]

    @cached_property
    def each(self) -> ValuePlace | None:
        """The place of an item of this list; None if this is no list, or nothing is known of its items."""
        items = self.schema.get("items")
        if self.schema.get("type") != "array" or not isinstance(items, dict):
            return None
        inner, nullable = unwrapped(items, self.named)
        return ValuePlace(inner, ABSENT, True, nullable, self.named)

    @property
    def choices(self) -> list[JSON] | None:
        """The values of which this list may have several, None where it is no such list."""
        return self.each.options if self.each and not self.each.nullable else None

    @property
    def decimal(self) -> bool:
        """Whether this is a number that is passed in its digits, as a text: a Decimal.

        A float or a text has the same schema, unless there are bounds, and so takes words too.
        """
        parts = self.schema.get("anyOf")
        types = [part.get("type") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return types == ["number", "string"]

    @property
    def bounded(self) -> Mapping[str, Any]:
        """The schema that has the bounds of a number."""
        return self.schema["anyOf"][0] if self.decimal else self.schema

    def kind(self, code: bool) -> str:
        """The simplest field that carries the value exactly. One for a secret shows nothing of what is typed."""
        value = self.value
        if is_reference(value) or (self.empty and is_secret(self.schema)):
            return "secret" if self.empty else "kept"
        if (options := self.options) is not None:
            return self._kind_of_choice(options)
        if self.schema.get("type") == "string" and (self.empty or (isinstance(value, str) and _typed(value))):
            return self._kind_of_text(code)
        return self._kind_of_others()

    def _kind_of_others(self) -> str:
        """Return the kind for numbers and lists; json for all else, and for a value that the field would not carry."""
        found, carried = "json", True
        if self.choices is not None:
            found, carried = "choices", self._ticked is not None
        elif self.decimal:
            found, carried = "number", is_decimal(self.value)
        elif self.schema.get("type") in ("integer", "number"):
            found, carried = "number", type(self.value) in (int, float)
        elif self.each and not self.each.nullable and self.each.kind(False) in LISTED:
            found, carried = "lines", self._lines() is not None
        return found if carried or (self.empty and found != "choices") else "json"

    def _kind_of_choice(self, options: Sequence[JSON]) -> str:
        if self.value is not ABSENT and not any(same_json(self.value, option) for option in options):
            return "json"
        labels = {label_of(option) for option in options}
        in_a_line = all(each.strip() and "\n" not in each and not unseen(each) for each in labels)
        tellable = in_a_line and len(labels) == len(options)
        return "search" if len(options) > SEARCHED_FROM and tellable else "choice"

    def _kind_of_text(self, code: bool) -> str:
        value, wanted = self.value, self.schema.get("format")
        if (timed := TIMES.get(str(wanted))) and (self.empty or time_text(timed, str(value)) is not None):
            return timed
        short = self.empty or (isinstance(value, str) and "\n" not in value)
        stripped = self.empty or str(value).strip() == value  # browsers strip addresses
        if short and stripped and not code and (named := FORMATS.get(str(wanted))):
            return named
        long = whole(self.schema.get("x-lines")) > 1 or whole(self.schema.get("maxLength")) > LONG_FROM
        if long and wanted is None:
            return "text"
        return "line" if short and not code and (self.empty or len(str(value)) <= LINE_MOST) else "text"

    @property
    def _ticked(self) -> list[int] | None:
        """The numbers of the choices that its value has; None if it is no list of some of them, each once."""
        options, value = self.choices or [], self._shown
        if value is ABSENT or value is None:
            return []
        known = {json.dumps(option): number for number, option in enumerate(options)}
        if not isinstance(value, list):
            return None
        found = [known.get(json.dumps(item)) for item in value]
        numbers = [number for number in found if number is not None]
        return sorted(numbers) if len(set(numbers)) == len(found) else None

    @property
    def _shown(self) -> JSON:
        """What the choices show: the default, as long as there is no value."""
        return self.default if self.value is ABSENT else self.value

    def _lines(self) -> list[str] | None:
        """Return the items of the value as lines; None if lines would not carry them exactly."""
        if not isinstance(self.value, list) or self.each is None:
            return None
        lines = []
        for item in self.value:
            place = ValuePlace(self.each.schema, item, True, self.each.nullable, self.named)
            kind = place.kind(False)
            text = "\n" if kind in ("json", "text") and not isinstance(item, str) else place.text(kind)
            if not text.strip() or "\n" in text or not self._reads_as(text, item):
                return None
            lines.append(text)
        return lines

    def _reads_as(self, text: str, item: JSON) -> bool:
        try:
            return same_json(self._item(text), item)
        except Wrong:
            return False

    def _item(self, text: str) -> JSON:
        """Return the item of a list that is typed in this line. Raises Wrong."""
        if self.each is None or (kind := self.each.kind(False)) in SPELLED:
            if not _typed(text):
                raise Wrong("This cannot be typed.")
            return text
        return self.each.read(kind, text)

    def text(self, kind: str) -> str:
        """Return the value's text in a field of this kind."""
        value = self.value
        if is_reference(value):
            return as_text(value, ANY)
        if kind == "choices":
            return "\n".join(json.dumps((self.choices or [])[number]) for number in self._ticked or [])
        if value is ABSENT or (value is None and kind not in ("json", "choice")):
            return ""
        match kind:
            case "choice":
                text = json.dumps(value)
            case "search":
                text = label_of(value)
            case "lines":
                text = "\n".join(self._lines() or [])
            case "date" | "time" | "datetime" | "duration":
                text = time_text(kind, str(value)) or ""
            case _:
                text = value if isinstance(value, str) and kind != "json" else spelled_out(value)
        return text

    def read(self, kind: str, text: str) -> JSON:
        """Return the value that was typed; unchanged text returns the original value. Raises Wrong."""
        if is_reference(self.value):
            return self.value
        if self.shows(kind, text):
            return self._untouched(kind)
        if kind in SPELLED and unseen(text):
            raise Wrong("This has invisible or misleading characters, now shown as escapes: please check them.")
        found = self._typed(kind, text)
        digits = self.decimal and isinstance(found, str) and is_decimal(found)
        judged = number_of(str(found), whole=False) if digits else found
        if found not in (ABSENT, None) and (why := complaint(self.bounded, judged)):
            raise Wrong(why)
        return found

    def stays(self, kind: str) -> bool:
        """Whether a field of this kind still has the value if it is sent to a form that does not know it.

        One that is left out has its default then.
        """
        value = self.default if self.value is ABSENT else self.value
        if value is ABSENT or kind in ("kept", "secret", "json", "file"):
            return True
        try:
            read = replace(self, value=ABSENT).read(kind, self.text(kind))
        except Wrong:
            return bool(self.text(kind))  # what is not allowed any more is said there; an empty field would say less
        read = self.default if read is ABSENT else read
        if kind == "choices" and isinstance(value, list) and isinstance(read, list):
            return sorted(map(str, value)) == sorted(map(str, read))
        return read is not ABSENT and same_json(read, value)

    def shows(self, kind: str, text: str) -> bool:
        """Whether this text stands in the field already. Browsers may leave out the seconds of a time."""
        before = self.text(kind)
        if kind in TIMES.values() and text and before:
            try:
                return read_time(kind, text) == read_time(kind, before)
            except BadTime:
                return False
        return text == before

    def _typed(self, kind: str, text: str) -> JSON:
        if kind == "lines":
            return self._listed(text)
        if kind == "choices":
            return [option_of(line, self.choices or []) for line in text.split("\n") if line]
        if kind in (*IN_A_LINE, "text", "secret"):
            return None if not text and self.nullable else text
        return self._parsed(kind, text) if text.strip() else self._nothing(kind)

    def _listed(self, text: str) -> list[JSON]:
        """Return the items that are typed line by line; each text as it is. Raises Wrong."""
        found: list[JSON] = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    found.append(self._item(line))
                except Wrong as error:
                    raise Wrong(f"Line {number}: {error}") from error
        return found

    def _untouched(self, kind: str) -> JSON:
        if self.value is not ABSENT or not self.required:
            return self.value
        if kind not in ("lines", "choices"):
            return self._nothing(kind)
        if why := complaint(self.schema, []):
            raise Wrong("Choose at least one." if kind == "choices" and self.schema.get("minItems") == 1 else why)
        return []

    def _parsed(self, kind: str, text: str) -> JSON:
        if kind == "number" and self.decimal and len(self.bounded) == 1:
            return text.strip()
        if kind == "number":
            number = number_of(text.strip(), whole=self.schema.get("type") == "integer")
            return text.strip() if self.decimal else number
        if kind in TIMES.values():
            try:
                return read_time(kind, text)
            except BadTime as error:
                raise Wrong(str(error)) from error
        if kind == "search":
            return option_called(text, self.options or [])
        return option_of(text, self.options or []) if kind == "choice" else json_of(text)

    def _nothing(self, kind: str) -> JSON:
        if not self.required:
            return ABSENT
        if self.nullable and kind not in ("choice", "json"):
            return None
        missing = {"file": "Choose a file.", "choice": "Choose one.", "search": "Choose one."}
        raise Wrong(missing.get(kind, "Enter a value."))

    def typed_as(self, text: str) -> tuple[str, str]:
        """Return the kind of its field, and how the text of a line, or of a cell, is typed there.

        A choice is named by its JSON, by its text, or as people read it; several stand in a line each.
        """
        kind = self.kind(code=False)
        if kind == "choice":
            return kind, by_any_name(self.options or [], text)
        if kind == "choices":
            return kind, "\n".join(by_any_name(self.choices or [], line) for line in text.split("\n") if line.strip())
        if kind == "search":
            named = {json.dumps(option): label_of(option) for option in self.options or []}
            return kind, named.get(by_any_name(self.options or [], text), text)
        if kind == "datetime":
            return kind, " ".join(filter(None, local_and_zone(text)))
        return "text" if kind == "line" and ("\n" in text or len(text) > LINE_MOST) else kind, text


def _options(schema: Mapping[str, Any]) -> list[JSON] | None:
    found = schema.get("enum")
    if not isinstance(found, list):
        found = [schema["const"]] if "const" in schema else None
    return [True, False] if found is None and schema.get("type") == "boolean" else found


def _typed(text: str) -> bool:
    """Whether a person can type this text and see all of it, and browsers send it back unchanged."""
    return not _CONTROL.search(text) and not unseen(text)


def whole(value: Any) -> int:
    """Return a whole number of a schema; 0 for anything else."""
    return value if type(value) is int else 0
