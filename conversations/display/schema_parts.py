"""Fields with fields inside: an object, one of several objects, and rows of objects, each as a form within the form.

    {"address": {"city": "Ulm"}}                  a group: the fields of the object
    {"pay": {"kind": "card", "number": "4"}}      branches: which of the objects, and the fields of that one
    {"stops": [{"city": "Ulm"}, {"city": "Ems"}]} rows, which a person adds and removes

A form inside has no more forms inside: what is deeper is JSON.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from agents.engine.ledger import JSON
from conversations.approvals.edits import same_json
from conversations.display.schema_checks import complaint
from conversations.display.schema_parsing import Wrong
from conversations.display.schema_shapes import Branch, Shape, branch_of, shape_of
from conversations.display.schema_values import ABSENT, ValuePlace, whole

ROWS_MOST = 200
"""Rows of a list. A longer one is given as JSON."""
EMPTY, NULL = "", "null"
"""The branches that are no object: the field is left out, or null."""


class Form(Protocol):
    """A form of an object: the one in which a part stands, and those inside; see schema_form.SchemaForm."""

    posted: Mapping[str, str] | None
    errors: dict[str, list[str]]
    prefix: str
    focus: bool | None

    @property
    def touched(self) -> bool:
        """Whether something was typed into it."""
        ...

    @property
    def summary(self) -> str:
        """What stands in its fields, a line each."""
        ...

    def payload(self) -> dict[str, JSON]:
        """Return the input that was typed."""
        ...

    def within(self, schema: Mapping[str, Any], input: Mapping[str, JSON], prefix: str) -> Form:
        """Return the form of an object in this one."""
        ...


@dataclass(frozen=True)
class Part(ABC):
    """A field with fields inside. `number`: its place in the form. `outer`: the form in which it stands."""

    outer: Form
    number: int
    name: str
    place: ValuePlace
    shape: Shape

    @property
    @abstractmethod
    def forms(self) -> Sequence[Form]:
        """The forms inside whose fields count."""

    @abstractmethod
    def read(self) -> JSON:
        """Return what was typed. Raises Wrong; what is wrong inside, the forms know."""

    @property
    def touched(self) -> bool:
        """Whether something was typed inside."""
        return any(form.touched for form in self.forms)

    @property
    def words(self) -> str:
        """What stands inside, line by line."""
        return "\n\n".join(form.summary for form in self.forms)

    def problems(self) -> dict[str, list[str]]:
        """Return what is wrong inside, by place, after `read`."""
        return {f"{self.name}.{at}": why for form in self.forms for at, why in form.errors.items()}

    @property
    def key(self) -> str:
        """The name of its own control."""
        return f"{self.outer.prefix}{self.shape.kind}-{self.number}"

    @property
    def posted(self) -> str | None:
        """What was sent of its own control."""
        return (self.outer.posted or {}).get(self.key)

    @property
    def base(self) -> JSON:
        """What its forms show before anybody has typed: the value, or else the default."""
        return self.place.default if self.place.value is ABSENT else self.place.value

    def inner(self, branch: Branch, suffix: str, value: JSON) -> Form:
        """Return the form of this object, with what is wrong with it."""
        given = value if isinstance(value, dict) else {}
        if branch.tag:
            given = {key: each for key, each in given.items() if key != branch.tag[0]}
        return self.outer.within(branch.schema, given, f"{self.number}.{suffix}")

    def wrong_in(self, branch: Branch, begins: str) -> dict[str, list[str]]:
        """Return what is wrong inside, by the place there. Validators put the name of a branch before it."""
        found = {}
        for at, why in self.outer.errors.items():
            if at.startswith(begins):
                parts = at.removeprefix(begins).split(".")
                while len(parts) > 1 and parts[0] not in branch.schema["properties"]:
                    parts = parts[1:]
                found[".".join(parts)] = why
        return found

    def unless_default(self, found: JSON) -> JSON:
        """Return what was typed; ABSENT if that is the default, and nothing else was given."""
        untouched = self.place.value is ABSENT and not self.place.required and same_json(found, self.place.default)
        return ABSENT if untouched else found


class Group(Part):
    """The fields of one object."""

    @cached_property
    def form(self) -> Form:
        """Its form."""
        branch = self.shape.branches[0]
        form = self.inner(branch, "", self.base)
        form.errors = self.wrong_in(branch, f"{self.name}.")
        return form

    @property
    def forms(self) -> Sequence[Form]:
        """Its form."""
        return [self.form]

    def read(self) -> JSON:
        """Return the object."""
        return self.unless_default(self.form.payload())


@dataclass(frozen=True)
class PartBranch:
    """A branch that can be chosen: its value as it is posted, its label, and its form, if it is an object."""

    value: str
    label: str
    form: Form | None
    chosen: bool


class Branches(Part):
    """One of several objects, or none."""

    @cached_property
    def options(self) -> list[PartBranch]:
        """The branches, in order. Each shows the value or the default that belongs to it."""
        at = self._at(self.base)
        found = [PartBranch(value, label, None, value == self.chosen) for value, label in self._without()]
        for number, branch in enumerate(self.shape.branches):
            form = self.inner(branch, f"{number}.", self.base if number == at else {})
            if chosen := self.chosen == str(number):
                form.errors = self.wrong_in(branch, f"{self.name}.")
            found.append(PartBranch(str(number), branch.label, form, chosen))
        return found

    @cached_property
    def chosen(self) -> str | None:
        """The branch that is chosen, as it is posted; None for none."""
        if self.posted is not None:
            return self.posted
        return self._at_first

    @property
    def _at_first(self) -> str | None:
        """The branch that is chosen before anybody has chosen."""
        if (at := self._at(self.base)) is not None:
            return str(at)
        values = [value for value, _ in self._without()]
        wanted = NULL if self.place.value is None and NULL in values else EMPTY
        return wanted if wanted in values else None

    @property
    def forms(self) -> Sequence[Form]:
        """The form of the branch that is chosen."""
        return [each.form for each in self.options if each.chosen and each.form]

    @property
    def touched(self) -> bool:
        """Whether another branch was chosen, or something was typed inside."""
        return self.chosen != self._at_first or super().touched

    @property
    def words(self) -> str:
        """The branch that is chosen, and what stands inside."""
        chosen = next((each for each in self.options if each.chosen), None)
        named = [] if chosen is None or (len(self.shape.branches) == 1 and chosen.form) else [chosen.label]
        return "\n".join([*named, *filter(None, [super().words])])

    def read(self) -> JSON:
        """Return the object of the branch that is chosen, ABSENT or null. Raises Wrong if none is."""
        values = [value for value, _ in self._without()]
        if self.chosen in values:
            left_null = self.place.value is None and NULL not in values
            return None if self.chosen == NULL or left_null else ABSENT
        if not self.forms:
            raise Wrong("Choose one.")
        branch = self.shape.branches[int(self.chosen or 0)]
        tagged = {branch.tag[0]: branch.tag[1]} if branch.tag else {}
        return self.unless_default(self.forms[0].payload() | tagged)

    def _at(self, value: JSON) -> int | None:
        return branch_of(self.shape, value, self.place.named) if isinstance(value, dict) else None

    def _without(self) -> list[tuple[str, str]]:
        """Return the choices that are no object, as they are posted, with their labels."""
        place, found = self.place, []
        if not place.required and not isinstance(place.default, dict):
            found.append((EMPTY, "None" if place.default is None else "Left out"))
        if place.nullable and (place.required or place.default is not None):
            found.append((NULL, "None"))
        return found


@dataclass(frozen=True)
class PartRow:
    """A row: its number as it is posted, its position from 1 on, and its form."""

    value: str
    position: int
    form: Form


class Rows(Part):
    """A list of objects, each a row. Rows are numbered as they were made; those of the value come first.

    The control of its own has the numbers of the rows that are there. A button adds one, and each row has a button that
    removes it: they send the form, and nothing else happens.
    """

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of its rows."""
        if self.posted is None:
            return self._at_first
        sent = self.outer.posted or {}
        given = list(dict.fromkeys(int(each) for each in re.findall(r"\d{1,6}", self.posted)))
        highest = max([*given, len(self._given) - 1], default=-1)
        left = [each for each in given if str(each) != sent.get(self.remove)]
        return [*left, *([highest + 1] if self.add in sent else [])][:ROWS_MOST]

    @cached_property
    def rows(self) -> list[PartRow]:
        """Its rows."""
        branch, given = self.shape.branches[0], self._given
        found = []
        for position, number in enumerate(self.numbers, 1):
            value = given[number] if number < len(given) else {}
            found.append(PartRow(str(number), position, self.inner(branch, f"{number}.", value)))
        for position, row in enumerate(each for each in found if self._passes(each)):
            row.form.errors = self.wrong_in(branch, f"{self.name}.{position}.")  # only rows that are passed are counted
        if found and self.add in (self.outer.posted or {}):
            found[-1].form.focus = True
        return found

    @property
    def forms(self) -> Sequence[Form]:
        """The forms of the rows that are passed."""
        return [row.form for row in self.rows if self._passes(row)]

    @property
    def touched(self) -> bool:
        """Whether rows were added or removed, or something was typed into one."""
        return self.numbers != self._at_first or super().touched

    def read(self) -> JSON:
        """Return the list. A new row into which nothing was typed is left out. Raises Wrong for too few or too many."""
        found, value = [form.payload() for form in self.forms], self.place.value
        if not found and not self.base and (value is None or not self.place.required):
            return value
        if why := complaint(self.place.schema, found):
            raise Wrong(why)
        return self.unless_default(found)

    def problems(self) -> dict[str, list[str]]:
        """Return what is wrong in its rows, by place, after `read`."""
        inside = enumerate(self.forms)
        return {f"{self.name}.{at}.{place}": why for at, form in inside for place, why in form.errors.items()}

    @property
    def add(self) -> str:
        """The name of the button that adds a row."""
        return f"{self.outer.prefix}add-{self.number}"

    @property
    def remove(self) -> str:
        """The name of the buttons that remove a row; their value is its number."""
        return f"{self.outer.prefix}remove-{self.number}"

    @property
    def text(self) -> str:
        """The numbers of its rows, as they are posted."""
        return ",".join(map(str, self.numbers))

    @property
    def full(self) -> bool:
        """Whether there can be no more rows."""
        return len(self.numbers) >= (whole(self.place.schema.get("maxItems")) or ROWS_MOST)

    def _passes(self, row: PartRow) -> bool:
        """Whether a row is passed: a new one into which something must be typed counts only then."""
        needed = self.shape.branches[0].schema.get("required")
        return int(row.value) < len(self._given) or not needed or row.form.touched

    @property
    def _given(self) -> list[Any]:
        return self.base if isinstance(self.base, list) else []

    @property
    def _at_first(self) -> list[int]:
        """The rows that stand there at the start: as many as must be, and one that shows what a row is."""
        least = max(whole(self.place.schema.get("minItems")), 1 if self.place.value is ABSENT else 0)
        return list(range(min(max(len(self._given), least), ROWS_MOST)))


KINDS: Mapping[str, type[Part]] = {"group": Group, "branches": Branches, "rows": Rows}


def part_of(outer: Form, number: int, name: str, place: ValuePlace) -> Part | None:
    """Return what stands inside this field; None for a single value, and for one that no form inside would carry."""
    shape = shape_of(place.schema, place.named)
    if shape and shape.kind == "group" and (place.nullable or not (place.required or isinstance(place.default, dict))):
        title = place.schema.get("title")
        shape = Shape("branches", (Branch(title if isinstance(title, str) and title else "Fill in", place.schema),))
    if shape is None or not _carried(shape, place):
        return None
    return KINDS[shape.kind](outer, number, name, place, shape)


def _carried(shape: Shape, place: ValuePlace) -> bool:
    """Whether forms inside carry the value, and the default if there is no value, exactly."""
    value = place.default if place.value is ABSENT else place.value
    if value is ABSENT or value is None:
        return value is ABSENT or place.nullable or place.value is ABSENT
    if shape.kind == "rows":
        schema = shape.branches[0].schema
        return isinstance(value, list) and len(value) <= ROWS_MOST and all(_fits(schema, each) for each in value)
    if not isinstance(value, dict):
        return False
    at = branch_of(shape, value, place.named) if shape.kind == "branches" else 0
    if at is None:
        return False
    tag = shape.branches[at].tag
    return _fits(shape.branches[at].schema, {key: each for key, each in value.items() if not tag or key != tag[0]})


def _fits(schema: Mapping[str, Any], value: JSON) -> bool:
    """Whether a form of this schema has a field for each name of the value."""
    return isinstance(value, dict) and value.keys() <= schema["properties"].keys()
