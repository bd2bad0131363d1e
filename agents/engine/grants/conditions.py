"""Conditions: what a grant says about each value of a call's input. Whatever it says nothing about, it does not cover.

There is no language of expressions: a condition is a place in the input, an operator and a value. In doubt a condition
is not met, and then a person is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote

import re2

from agents.engine.ledger import JSON, canonical, copy_json


class Operator(StrEnum):
    """How a value must compare with that of a condition."""

    IS = "is"
    IN = "in"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    MATCHES = "matches"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"
    ANY = "any"  # it may be anything


TEXTS = frozenset({Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.MATCHES})
"""The operators that hold of part of a text."""
NUMBERS = frozenset({Operator.AT_MOST, Operator.AT_LEAST})

CONDITIONS_MOST = 100
"""Conditions of one grant: nobody reads a longer list."""
VALUE_MOST = 4_000
"""Characters of the value of one condition, as JSON."""
PATTERN_BYTES = 1 << 20
"""The memory that a compiled pattern may take. Patterns of people need a few kilobytes."""


class Part(NamedTuple):
    """One value of an input that is no list and no object, or an empty one. `item`: it stands in a list."""

    value: JSON
    item: bool = False


@dataclass(frozen=True)
class Condition:
    """What must hold of the value at `field`, such as `path`, `options.depth` or `argv.1`, counted from 0.

    With ANY, `field` may also name a list or an object: then whatever is in it may be anything.
    """

    field: str
    operator: Operator
    value: JSON = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Condition:
        """Return a recorded condition. Raises KeyError, TypeError or ValueError for what is none."""
        return cls(str(said["field"]), Operator(said["operator"]), said.get("value"))

    def recorded(self) -> dict[str, JSON]:
        """Return it as it is recorded."""
        said = {"field": self.field, "operator": self.operator.value}
        return said if self.operator is Operator.ANY else {**said, "value": self.value}

    def covers(self, place: str) -> bool:
        """Whether it says something about the value at this place."""
        return place == self.field or (self.operator is Operator.ANY and place.startswith(f"{self.field}."))

    def met_by(self, part: Part) -> bool:
        """Whether it holds of this value."""
        value, wanted = part.value, self.value
        if part.item and _is_option(value) and not self._names_option():
            return False
        match self.operator:
            case Operator.ANY:
                met = True
            case Operator.IS:
                met = _same(value, wanted)
            case Operator.IN:
                met = isinstance(wanted, list) and any(_same(value, each) for each in wanted)
            case Operator.AT_MOST | Operator.AT_LEAST if _is_number(value) and _is_number(wanted):
                met = bool(value <= wanted if self.operator is Operator.AT_MOST else value >= wanted)
            case _ if isinstance(value, str) and isinstance(wanted, str):
                met = _is_plain(value) and self._met_by_text(value, wanted)
            case _:
                met = False
        return met

    def _met_by_text(self, value: str, wanted: str) -> bool:
        match self.operator:
            case Operator.STARTS_WITH:
                return value.startswith(wanted)
            case Operator.ENDS_WITH:  # the end of an address says nothing about where it leads
                return value.endswith(wanted) and "://" not in value
            case Operator.MATCHES:
                return _compiled(wanted).fullmatch(value) is not None
            case _:
                return False

    def _names_option(self) -> bool:
        """Whether its own value is an option of a program: then whoever gave it has seen that it is one."""
        if self.operator is Operator.IN and isinstance(self.value, list):
            return any(map(_is_option, self.value))
        return self.operator in (Operator.IS, Operator.STARTS_WITH) and _is_option(self.value)

    def problem(self) -> str | None:
        """Return why nobody can give it, as the end of a sentence; None if they can."""
        if why := self._problem_of_value():
            return why
        if self.operator is Operator.IN:
            scalars = isinstance(self.value, list) and all(not isinstance(each, list | dict) for each in self.value)
            return None if scalars and self.value else "give the values that it may have, one per line"
        if self.operator in NUMBERS:
            return None if _is_number(self.value) else "give a number"
        if self.operator in TEXTS:
            return self._problem_of_text()
        return None

    def _problem_of_value(self) -> str | None:
        try:
            said = canonical(copy_json(self.value))
        except TypeError:
            return "no call can have this value"
        if any("\x00" in text for text in _listed(self.value) if isinstance(text, str)):
            return "no call can have the NUL character"
        if len(said) > VALUE_MOST:
            return f"this is longer than {VALUE_MOST:,} characters: let it be anything, or grant the exact call"
        return None

    def _problem_of_text(self) -> str | None:
        if not isinstance(self.value, str) or not self.value.strip():
            return "give a text: an empty one would allow anything"
        if self.operator is Operator.STARTS_WITH and _OPEN_ADDRESS.fullmatch(self.value.lstrip()):
            return "end the name of the server with a slash, or a server with a longer name would be allowed too"
        if self.operator is not Operator.MATCHES:
            return None
        try:
            _compiled(self.value)
        except re2.error as error:
            return f"this is not a pattern: {_words_of(error)}"
        return None


def parts_of(input: JSON, place: str = "", item: bool = False) -> Iterator[tuple[str, Part]]:
    """Yield each value of an input with its place.

    In the names of fields, `~` is written `~0` and a dot `~1`; one of digits begins with `~2`, since numbers are items,
    and no name at all is `~3`.
    """
    if isinstance(input, dict) and input:
        for name, value in input.items():
            named = str(name).replace("~", "~0").replace(".", "~1")
            named = f"~2{named}" if named.isdigit() else named or "~3"
            yield from parts_of(value, f"{place}.{named}" if place else named)
    elif isinstance(input, list) and input:
        for number, value in enumerate(input):
            yield from parts_of(value, f"{place}.{number}", True)
    else:
        yield place, Part(input, item)


def unmet(conditions: Sequence[Condition], input: Mapping[str, JSON]) -> str | None:
    """Return the place of the first value that the conditions do not allow, or of one that is missing; None if all fit.

    Each value must be covered by a condition, each condition must cover a value, and all that cover it must hold.
    """
    covered = set[str]()
    for place, part in parts_of(dict(input)):
        about = [condition for condition in conditions if condition.covers(place)]
        if not about or not all(condition.met_by(part) for condition in about):
            return place
        covered.update(condition.field for condition in about)
    return next((condition.field for condition in conditions if condition.field not in covered), None)


def problems(conditions: Sequence[Condition], input: Mapping[str, JSON]) -> dict[str, str]:
    """Return why a person cannot give these conditions on a card with this input, by field; "" for all of them."""
    if len(conditions) > CONDITIONS_MOST:
        return {"": f"there are more than {CONDITIONS_MOST} conditions: grant the exact call instead"}
    wrong = {each.field: why for each in conditions if (why := each.problem())}
    if wrong:
        return wrong
    if not any(each.operator is not Operator.ANY for each in conditions):
        return {"": "this would allow any call of the tool: say at least one thing that must stay as it is"}
    if (place := unmet(conditions, input)) is not None:
        return {place: "the call that you see here must be allowed too"}
    return {}


def of_input(input: Mapping[str, JSON]) -> list[Condition]:
    """Return the conditions that only this input meets: each value must be as it is."""
    return [Condition(place, Operator.IS, part.value) for place, part in parts_of(dict(input))]


_OPEN_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/]*")
"""The beginning of an address in which the name of the server may go on."""
_READERS = 4
"""How often a text may have been escaped: `%252e` is `%2e` to its next reader, and `.` to the one after."""
_STEP = re.compile(r"(?:^|[/\\]) *\.{1,2} *(?:[/\\]|$)")
"""A part of a path that leads elsewhere: `..` or `.`, also with blanks around it, which a tool may strip."""


def _is_plain(text: str) -> bool:
    """Whether this is one line that leads nowhere else than it says, as a path or as an address."""
    for _ in range(_READERS):
        if not text.isprintable() or _STEP.search(text):
            return False
        if text == (text := unquote(text)):
            return True
    return False


def _is_option(value: JSON) -> bool:
    """Whether a program would read this argument as an option, such as `--output=/etc/passwd`."""
    return isinstance(value, str) and value.lstrip().startswith("-")


def _is_number(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, float) and math.isfinite(value))


def _listed(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else [value]


def _words_of(error: Exception) -> str:
    """Return what is wrong with a pattern; re2 says it in bytes."""
    said = error.args[0] if error.args else error
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _same(one: JSON, other: JSON) -> bool:
    """Whether two values are the same as JSON: 1 differs from 1.0, and from true."""
    return canonical(one) == canonical(other)


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem, options.log_errors = PATTERN_BYTES, False
    return re2.compile(pattern, options=options)
