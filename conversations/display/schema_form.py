"""Forms generated from JSON Schemas: every input becomes fields, and unchanged fields return exactly the same value.

A field is as simple as its schema and value allow. Values that no simple field can carry exactly are edited as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from django.utils import timezone

from agents.engine.ledger import JSON
from agents.engine.runtime.asking import FIELD_ORDER
from conversations.display.faithful import plain, spelled_out, unseen
from conversations.display.schema_checks import bounds_of
from conversations.display.schema_parsing import Wrong, label_of
from conversations.display.schema_parts import Part, part_of
from conversations.display.schema_shapes import unwrapped
from conversations.display.schema_times import local_and_zone
from conversations.display.schema_values import ABSENT, LINE_MOST, SPELLED, TYPED_KINDS, ValuePlace, whole

ROWS_MOST = 40
"""Maximum height of a field, in lines, before it scrolls in browsers that cannot grow it."""
RADIOS_MOST, RADIOS_LENGTH = 4, 48
"""Choices that stand side by side, and the characters of all their labels together."""
SCHEMA_MOST = 4_000
"""Characters of a schema that are shown beside a field of JSON."""
RETYPE = "Type this again: it is not kept on the page."
WIDTHS = ("half", "third")
"""What `x-width` may say of a field; without it, it is as wide as the form."""


@dataclass(frozen=True)
class FormField:
    """One field. `key` is its name in the form, `kind` one of schema_values.TYPED_KINDS; or kept: a secret of the run,
    which cannot be changed; or group, branches or rows: its `part` has the forms inside.

    `options` are the values of a choice as they are posted, with their labels; of several, with whether each is ticked.
    `zone` is the time zone beside a local time. `first`: it gets the focus. `note`: why something stands there already.
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
    note: str = ""
    zone: str = ""
    part: Part | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)

    template: ClassVar[str] = ""
    """What shows it, for a kind of field that an app above adds; "" for those that are known here."""

    @property
    def label(self) -> str:
        """Its name for people."""
        return label_for(self.name, self.title)

    @property
    def words(self) -> str:
        """What stands in it, as people read it: a choice by its label, and what is inside line by line."""
        if self.part:
            return self.part.words
        if self.kind == "choices":
            return ", ".join(words for ticked, words in self.options if ticked)
        if self.kind == "choice":
            return next((words for value, words in self.options if value and value == self.text), "")
        return f"{self.text.replace('T', ' ')} {self.zone}".strip() if self.kind == "datetime" else self.text

    @property
    def wrong(self) -> bool:
        """Whether it needs a change, or a field inside does."""
        return bool(self.errors) or (self.part is not None and any(form.errors for form in self.part.forms))

    @property
    def seconds(self) -> bool:
        """Whether its time has seconds, which browsers else do not show."""
        return re.search(r":\d\d:(?!00)\d\d", self.text) is not None

    @property
    def spelled(self) -> bool:
        """Whether it is a text that is shown as JSON, with its characters escaped."""
        return self.kind == "json" and self.text.startswith('"')

    @property
    def rows(self) -> int:
        """Lines needed to show all of it, for browsers that do not grow the field themselves."""
        wrapped = sum(len(line) // LINE_MOST + 1 for line in self.text.split("\n"))
        return min(max(wrapped, min(whole(self.schema.get("x-lines")) or 1, ROWS_MOST)), ROWS_MOST)

    @property
    def input_type(self) -> str:
        """The type of its control in HTML. Some are texts: browsers drop long numbers, and change addresses."""
        if self.kind == "number":
            return "number" if self.least and self.most else "text"
        types = {"date": "date", "time": "time", "datetime": "datetime-local", "url": "url"}
        return types.get(self.kind, "text")

    @property
    def least(self) -> str:
        """The least number that is allowed, for a whole number within bounds."""
        return _bound(self.bounds, "minimum")

    @property
    def most(self) -> str:
        """The greatest number that is allowed, for a whole number within bounds."""
        return _bound(self.bounds, "maximum")

    @property
    def step(self) -> int:
        """The step between the numbers that are allowed, which browsers count from the least one."""
        found = whole(self.bounds.get("multipleOf")) or 1
        return 1 if int(self.least or 0) % found else found

    @property
    def radios(self) -> Sequence[tuple[str, str]]:
        """Its choices, if they stand side by side: a few short ones. None is chosen before somebody has chosen."""
        found = [(value, words) for value, words in self.options if value or not self.required]
        few = len(found) <= RADIOS_MOST and sum(len(words) for _, words in found) <= RADIOS_LENGTH
        return found if self.kind == "choice" and few else ()

    @property
    def width(self) -> str:
        """How wide it is: half or third of the form, or "" for all of it."""
        found = self.schema.get("x-width")
        return found if found in WIDTHS else ""

    @property
    def shape(self) -> str:
        """Its JSON Schema, for a field that is typed as JSON; "" if that says nothing."""
        hidden = ("title", "description", "default", FIELD_ORDER)
        said = {key: each for key, each in self.schema.items() if key not in hidden and not key.startswith("x-")}
        text = json.dumps(said, indent=2, ensure_ascii=False)
        return text[:SCHEMA_MOST] if self.kind == "json" and said else ""


@dataclass
class SchemaForm:
    """The form of one input. `posted` is what was submitted, `code` the names of fields that contain code.

    `prefix` begins the names of its fields, where several forms are sent as one. `focus`: its first field gets the
    focus, not only one that is wrong; None: none does. `notes`: why something stands in a field already, by name.
    `inside`: it is a form within a form. `anew`: it is sent without this input, so its fields show only what they carry
    by themselves.

    After `payload()` the fields have their errors. A caller may add `errors` of its own, by place.
    """

    schema: Mapping[str, Any]
    input: Mapping[str, JSON]
    posted: Mapping[str, str] | None = None
    code: frozenset[str] = frozenset()
    errors: dict[str, list[str]] = field(default_factory=dict)
    prefix: str = ""
    focus: bool | None = True
    notes: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False
    anew: bool = False

    def payload(self) -> dict[str, JSON]:
        """Return the input that was typed. Fields that were not posted keep their value. Check `errors` before use."""
        found: dict[str, JSON] = {}
        for number, (name, place) in enumerate(self.places()):
            try:
                value = self._read(number, name, place)
            except Wrong as wrong:
                self.errors.setdefault(name, []).append(str(wrong))
                continue
            if value is not ABSENT:
                found[name] = value
        return found

    def _read(self, number: int, name: str, place: ValuePlace) -> JSON:
        """Return what was typed into one field. Raises Wrong; what is wrong inside it is among the errors."""
        part = self._part(number, name, place)
        if part is None:
            return place.read(*self._typed(number, name, place))
        value = part.read()
        self.errors |= part.problems()
        return value

    @property
    def fields(self) -> list[FormField]:
        """The fields, in the order of the schema; names that are not in the schema come last."""
        found = [self._field(number, name, place) for number, (name, place) in enumerate(self.places())]
        wrong = (number for number, each in enumerate(found) if each.wrong)
        start = next(wrong, 0 if self.focus and not self.adds_rows else None) if self.focus is not None else None
        return [replace(each, first=number == start) for number, each in enumerate(found)]

    @property
    def others(self) -> list[str]:
        """Errors that belong to no field of this form."""
        names = dict(self.places())
        wrong = {at: all for at, all in self.errors.items() if at.partition(".")[0] not in names}
        return [f"{at}: {why}" if at else why for at, all in wrong.items() for why in all]

    @property
    def touched(self) -> bool:
        """Whether something was typed into it: a field differs from what stood there."""
        for number, (name, place) in enumerate(self.places()):
            part = self._part(number, name, place)
            kind, text = self._typed(number, name, place)
            if part.touched if part else not place.shows(kind, text):
                return True
        return False

    @property
    def adds_rows(self) -> bool:
        """Whether it was sent to add or remove a row, and for nothing else."""
        return any(re.fullmatch(rf"{re.escape(self.prefix)}(add|remove)-\d+", name) for name in self.posted or {})

    @property
    def summary(self) -> str:
        """What stands in its fields, a line each."""
        return "\n".join(f"{each.label}: {each.words}" for each in self.fields if each.words)

    def places(self) -> list[tuple[str, ValuePlace]]:
        """Return the names of its fields with their places, in their order."""
        known = properties_of(self.schema)
        names = [*known, *(name for name in self.input if name not in known)]
        needed = self.schema.get("required", ())
        return [(name, self._place(known.get(name, {}), name, name in needed)) for name in names]

    def within(self, schema: Mapping[str, Any], input: Mapping[str, JSON], prefix: str) -> SchemaForm:
        """Return the form of an object in this one, whose fields' names begin with this too."""
        named = {**schema, "$defs": self.schema.get("$defs", {})}
        begins = f"{self.prefix}{prefix}"
        return SchemaForm(named, input, self.posted, prefix=begins, focus=False, inside=True, anew=self.anew)

    def _place(self, schema: Mapping[str, Any], name: str, required: bool) -> ValuePlace:
        named = self.schema.get("$defs", {})
        inner, nullable = unwrapped(schema, named)
        return ValuePlace(inner, self.input.get(name, ABSENT), required, nullable, named)

    def _part(self, number: int, name: str, place: ValuePlace) -> Part | None:
        """Return what stands inside a field, unless that was typed as JSON."""
        in_json = f"{self.prefix}json-{number}" in (self.posted or {})
        if self.anew and place.value == [] and place.default not in ([], ABSENT):
            return None  # no rows would be what is left out
        return None if self.inside or in_json or name in self.code else part_of(self, number, name, place)

    def _typed(self, number: int, name: str, place: ValuePlace) -> tuple[str, str]:
        """Return the field's present kind and text. A text shown as JSON stays JSON until it is accepted.

        It was sent as the kind that it was shown as, which another value may have made another one.
        """
        kind, sent = place.kind(name in self.code), self.posted or {}
        for each in (kind, *TYPED_KINDS):
            key = f"{self.prefix}{each}-{number}"
            if key in sent and kind != "kept":
                return each, self._sent(each, key, place)
        if self.anew and not place.stays(kind):
            kind = "json"
        return kind, place.text(kind)

    def _sent(self, kind: str, key: str, place: ValuePlace) -> str:
        """Return the text of a field that was sent under this key."""
        sent = self.posted or {}
        text = sent[key].replace("\r\n", "\n").replace("\r", "\n")
        if kind == "choices":
            ticked = (json.dumps(each) for at, each in enumerate(place.choices or []) if f"{key}.{at}" in sent)
            return text or "\n".join(ticked)
        zone = sent.get(f"{key}.zone", "").strip()
        return f"{text} {zone}".strip() if kind == "datetime" and text.strip() else text

    def _field(self, number: int, name: str, place: ValuePlace) -> FormField:
        part = self._part(number, name, place)
        kind, text = self._typed(number, name, place)
        if kind in SPELLED and text != place.text(kind) and unseen(text):
            kind, text = "json", text_spelled_out(kind, text)
        inside = any(at.startswith(f"{name}.") for at in self.errors) and part
        wrong = [why for at, all in self.errors.items() if at == name or (at.startswith(f"{name}.") and not inside)
                 for why in all]  # fmt: skip
        local, zone = local_and_zone(text) if kind == "datetime" else (text, "")
        return FormField(
            key=part.key if part else f"{self.prefix}{kind}-{number}",
            name=name,
            kind=part.shape.kind if part else kind,
            text="" if part or kind == "secret" else local,
            title=_words(place.schema.get("title")),
            hint=" ".join(filter(None, [_words(place.schema.get("description")), bounds_of(place.bounded)])),
            default="" if part or kind == "choices" else place.default_label,
            options=_options(kind, text, place),
            required=place.required,
            code=name in self.code or kind == "json",
            errors=wrong,
            note=self.notes.get(name, RETYPE if kind == "secret" and text else ""),
            zone=zone or (timezone.get_current_timezone_name() if kind == "datetime" and not local else ""),
            part=part,
            schema=place.schema,
            bounds=place.bounded,
        )


def _options(kind: str, text: str, place: ValuePlace) -> list[tuple[str, str]]:
    """Return the choices of a field as they are posted, with their labels. Of several, "1" is posted of each that is
    ticked.
    """
    if kind == "choices":
        ticked = text.split("\n")
        return [("1" if json.dumps(each) in ticked else "", plain(label_of(each))) for each in place.choices or []]
    if kind == "search":
        return [("", plain(label_of(each))) for each in place.options or [] if each is not None]
    options = [(json.dumps(each), plain(label_of(each))) for each in place.options or []]
    if place.required:
        return options if place.value is not ABSENT else [("", "Choose…"), *options]
    if place.default is ABSENT:
        return [("", "left out"), *options]
    named = json.dumps(place.default)
    if text == named:  # it was given, and not only left out
        return options
    return [("", f"{words} (default)") if value == named else (value, words) for value, words in options]


def _words(text: object) -> str:
    return text if isinstance(text, str) else ""


def _bound(schema: Mapping[str, Any], key: str) -> str:
    found = schema.get(key)
    return str(found) if schema.get("type") == "integer" and type(found) is int and abs(found) < 2**53 else ""


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas of an object's fields by name, in the order in which they were declared, if that is known.

    A field that says `x-order` comes behind all with less; what says nothing has 0.
    One that is true or false, which says nothing of a field, is {}.
    """
    known = schema.get("properties", {})
    order = [name for name in schema.get(FIELD_ORDER, ()) if name in known]
    found = {name: known[name] if isinstance(known[name], dict) else {} for name in [*order, *known]}
    return dict(sorted(found.items(), key=lambda each: whole(each[1].get("x-order"))))


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
