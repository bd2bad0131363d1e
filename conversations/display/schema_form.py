"""Forms generated from JSON Schemas: every input becomes fields, and unchanged fields return exactly the same value.

A field is as simple as its schema and value allow. Values that no simple field can carry exactly are edited as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.runtime.asking import FIELD_ORDER
from conversations.display.faithful import plain, spelled_out, unseen
from conversations.display.schema_values import ABSENT, LINE_MOST, SPELLED, ValuePlace, Wrong, label_of

ROWS_MOST = 40
"""Maximum height of a field, in lines, before it scrolls in browsers that cannot grow it."""


@dataclass(frozen=True)
class FormField:
    """One field. `kind`: line, text, lines (one value each), number, choice, json, secret (typed, and never shown
    again) or kept (a secret of the run, which cannot be changed). `key` is its name in the form.

    `options` are the values of a choice as they are posted, with their labels. `first`: it gets the focus.
    """

    key: str
    name: str
    kind: str
    text: str
    title: str = ""
    hint: str = ""
    default: str = ""
    options: Sequence[tuple[str, str]] = ()
    required: bool = True
    code: bool = False
    errors: Sequence[str] = ()
    first: bool = False

    @property
    def label(self) -> str:
        """Its name for people."""
        return label_for(self.name, self.title)

    @property
    def spelled(self) -> bool:
        """Whether it is a text that is shown as JSON, with its characters escaped."""
        return self.kind == "json" and self.text.startswith('"')

    @property
    def rows(self) -> int:
        """Lines needed to show all of it, for browsers that do not grow the field themselves."""
        wrapped = sum(len(line) // LINE_MOST + 1 for line in self.text.split("\n"))
        return min(wrapped, ROWS_MOST)


@dataclass
class SchemaForm:
    """The form of one input. `posted` is what was submitted, `code` the names of fields that contain code.

    `prefix` begins the names of its fields, where several forms are sent as one. `focus`: its first field gets the
    focus, not only one that is wrong.

    After `payload()` the fields have their errors. A caller may add `errors` of its own, by field.
    """

    schema: Mapping[str, Any]
    input: Mapping[str, JSON]
    posted: Mapping[str, str] | None = None
    code: frozenset[str] = frozenset()
    errors: dict[str, list[str]] = field(default_factory=dict)
    prefix: str = ""
    focus: bool = True

    def payload(self) -> dict[str, JSON]:
        """Return the input that was typed. Fields that were not posted keep their value. Check `errors` before use."""
        found: dict[str, JSON] = {}
        for number, (name, place) in enumerate(self.places()):
            kind, text = self._typed(number, name, place)
            try:
                value = place.read(kind, text)
            except Wrong as wrong:
                self.errors.setdefault(name, []).append(str(wrong))
                continue
            if value is not ABSENT:
                found[name] = value
        return found

    @property
    def fields(self) -> list[FormField]:
        """The fields, in the order of the schema; names that are not in the schema come last."""
        found = [self._field(number, name, place) for number, (name, place) in enumerate(self.places())]
        start = next((number for number, each in enumerate(found) if each.errors), 0 if self.focus else None)
        return [replace(each, first=number == start) for number, each in enumerate(found)]

    @property
    def others(self) -> list[str]:
        """Errors that belong to no field of this form."""
        names = dict(self.places())
        wrong = {at: all for at, all in self.errors.items() if at.partition(".")[0] not in names}
        return [f"{at}: {why}" if at else why for at, all in wrong.items() for why in all]

    def places(self) -> list[tuple[str, ValuePlace]]:
        """Return the names of its fields with their places, in their order."""
        known = properties_of(self.schema)
        names = [*known, *(name for name in self.input if name not in known)]
        needed = self.schema.get("required", ())
        return [(name, self._place(known.get(name, {}), name, name in needed)) for name in names]

    def _place(self, schema: Mapping[str, Any], name: str, required: bool) -> ValuePlace:
        inner, nullable = self._unwrapped(schema)
        return ValuePlace(inner, self.input.get(name, ABSENT), required, nullable)

    def _unwrapped(self, schema: Mapping[str, Any], followed: frozenset[str] = frozenset()) -> tuple[Any, bool]:
        """Return the schema behind a reference or beside null, and whether null is allowed.

        `followed`: the references behind which it stands; one of them again leads nowhere.
        """
        name, known = str(schema.get("$ref", "")).removeprefix("#/$defs/"), self.schema.get("$defs", {})
        if name not in followed and isinstance(known.get(name), dict):
            outer = {k: v for k, v in schema.items() if k != "$ref"}
            return self._unwrapped(outer | known[name], followed | {name})
        either = schema.get("anyOf", ())
        others = [each for each in either if not isinstance(each, dict) or each.get("type") != "null"]
        if len(either) == 2 and len(others) == 1 and isinstance(others[0], dict):
            outer = {k: v for k, v in schema.items() if k != "anyOf"}
            return self._unwrapped({**others[0], **outer}, followed)[0], True
        return schema, False

    def _typed(self, number: int, name: str, place: ValuePlace) -> tuple[str, str]:
        """Return the field's present kind and text. A text shown as JSON stays JSON until it is accepted.

        One that has become longer than a line, as in a line of a chat, stays a text of several lines.
        """
        kind = place.kind(name in self.code)
        for each in (kind, "json", *(["text"] if kind == "line" else [])):
            text = (self.posted or {}).get(f"{self.prefix}{each}-{number}")
            if text is not None:
                return each, text.replace("\r\n", "\n").replace("\r", "\n")
        return kind, place.text(kind)

    def _field(self, number: int, name: str, place: ValuePlace) -> FormField:
        kind, text = self._typed(number, name, place)
        if kind in SPELLED and text != place.text(kind) and unseen(text):
            kind, text = "json", text_spelled_out(kind, text)
        default = place.schema.get("default", ABSENT)
        options = [(json.dumps(each), plain(label_of(each))) for each in place.options or []]
        if not place.required or place.value is ABSENT:
            without = "left out" if default is ABSENT else f"{plain(label_of(default))} (default)"
            options = [("", "Choose…" if place.required else without), *options]
        wrong = [why for at, all in self.errors.items() if at.partition(".")[0] == name for why in all]
        return FormField(
            key=f"{self.prefix}{kind}-{number}",
            name=name,
            kind=kind,
            text="" if kind == "secret" else text,
            title=str(place.schema.get("title", "")),
            hint=str(place.schema.get("description", "")),
            default="" if default in (ABSENT, None, "", [], {}) else label_of(default),
            options=options,
            required=place.required,
            code=name in self.code or kind == "json",
            errors=wrong,
        )


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas of an object's fields by name, in the order in which they were declared, if that is known.

    One that is true or false, which says nothing of a field, is {}.
    """
    known = schema.get("properties", {})
    order = [name for name in schema.get(FIELD_ORDER, ()) if name in known]
    return {name: known[name] if isinstance(known[name], dict) else {} for name in [*order, *known]}


def label_for(name: str, title: str = "") -> str:
    """Return the label of a field: "timeout_seconds" is "Timeout seconds"; names of another form are not changed.

    A title that says more than the name, and is not only made from it, is used instead.
    """
    plain = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    label = name.replace("_", " ").capitalize() if plain else name
    return title if title and title.casefold() != label.casefold() else label


def text_spelled_out(kind: str, text: str) -> str:
    """Return what was typed into a field of this kind as JSON, with invisible characters escaped."""
    if kind == "json":
        return re.sub("[^\x20-\x7e\n\t]", lambda found: spelled_out(found[0])[1:-1], text)
    return spelled_out(text.split("\n") if kind == "lines" else text)
