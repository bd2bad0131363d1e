"""The form of *Approve and remember*: made from the call, so that whoever gives a grant says it about what they see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.discovery import installed_tool
from agents.engine.grants.conditions import (
    CONDITIONS_MOST,
    NUMBERS,
    TEXTS,
    VALUE_MOST,
    Condition,
    Operator,
    Part,
    parts_of,
)
from agents.engine.grants.grant import Asked, Grant, Scope
from agents.engine.grants.words import place_words, value_words
from agents.engine.ledger import JSON, canonical, copy_json, digest
from conversations.approvals.grants import USES_MOST, BadGrant, Remember
from conversations.display.grant_words import OPERATORS, grant_words

REVOKED, HOUR, TODAY, WEEK, DATE = "revoked", "hour", "today", "week", "date"
UNTIL = (
    (REVOKED, "Until I revoke it"),
    (HOUR, "For an hour"),
    (TODAY, "Until the end of today"),
    (WEEK, "For a week"),
    (DATE, "Until a date…"),
)
"""How long a grant may hold, as the form offers it."""

READ_FIRST = "Nothing was decided yet. Read what this would allow, then approve."


@dataclass
class ConditionRow:
    """One value of the call, and what the grant says about it.

    `label` is its place as people read it, and `text` is what was typed beside the operator.
    """

    number: int
    place: str
    label: str
    part: Part
    operator: Operator = Operator.IS
    text: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def now(self) -> str:
        """The value in the call."""
        return value_words(self.part.value)

    @property
    def operators(self) -> list[tuple[str, str]]:
        """What can be said about a value of its type."""
        value = self.part.value
        given = {Operator.IS, Operator.ANY, Operator.IN} - ({Operator.IN} if isinstance(value, list | dict) else set())
        given |= TEXTS if isinstance(value, str) else set()
        given |= NUMBERS if isinstance(value, int | float) and not isinstance(value, bool) else set()
        named = OPERATORS | {Operator.IS: "is exactly this"}  # the value stands beside it
        return [(operator.value, words) for operator, words in named.items() if operator in given]

    @property
    def lines(self) -> int:
        """The lines of the field for the value."""
        return min(max(self.text.count("\n") + 1, 1), 6)

    def condition(self) -> Condition:
        """Return what it says. A value that is none of its type stays the text that was typed, and is refused later."""
        match self.operator:
            case Operator.ANY:
                return Condition(self.place, self.operator)
            case Operator.IS:
                return Condition(self.place, self.operator, self.part.value)
            case Operator.IN:
                listed = [self._read(line) for line in self.text.split("\n") if line]
                return Condition(self.place, self.operator, listed)
            case _:
                return Condition(self.place, self.operator, self._read(self.text))

    def _read(self, text: str) -> JSON:
        """Return what was typed, as a value of the type that stands in the call."""
        if isinstance(self.part.value, str):
            return text
        try:
            return copy_json(json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return text


class RememberForm:
    """The form for the call that this gate asks about, with what was typed, if anything was.

    `posted` None: as it opens, which is *always in this conversation*.
    """

    def __init__(self, asked: Asked, posted: Mapping[str, str] | None = None) -> None:
        self.asked, self.problem = asked, ""
        self.errors: dict[str, list[str]] = {}
        opens = posted is None
        given = posted or {}
        self.fields = asked.question["grantable"] == Scope.FIELDS
        self.scope = Scope.FIELDS if self.fields and given.get("scope") == Scope.FIELDS else Scope.EXACT
        self.here = opens or "here" in given
        self.until = given.get("until", REVOKED)
        self.date = given.get("date", "").strip()
        self.uses = given.get("uses", "").strip()
        self.unattended = "unattended" in given
        self._seen = given.get("words", "")
        self.rows = _rows(asked.question, given) if self.fields else []

    until_choices = UNTIL

    @property
    def too_many(self) -> bool:
        """Whether the call has more values than a grant can speak about."""
        return len(self.rows) > CONDITIONS_MOST

    @cached_property
    def _chosen(self) -> Remember:
        """What was chosen, without the bounds that cannot be read: `errors` have those."""
        until, uses = self._read_until(), self._read_uses()
        conditions = tuple(row.condition() for row in self.rows) if self.scope is Scope.FIELDS else ()
        return Remember(self.scope, conditions, self.here, until, uses, self.unattended)

    @property
    def remember(self) -> Remember | None:
        """What was chosen; None if that is not valid, and `errors` say why."""
        chosen = self._chosen
        return None if self.errors else chosen

    @cached_property
    def grant(self) -> Grant | None:
        """The grant that would be given; None if anything is wrong, all of which is then marked."""
        try:
            found = self._chosen.grant(self.asked)
        except BadGrant as bad:
            self._take(bad)
            return None
        return None if self.errors else found

    @property
    def words(self) -> list[str]:
        """What it would allow, in sentences; empty if there are `errors`."""
        return grant_words(self.grant) if self.grant else []

    @property
    def sum(self) -> str:
        """What was said in words: with anything else nothing is decided. A time that is counted from now may move."""
        said = self.grant.recorded() if self.grant else {}
        return digest([{name: value for name, value in said.items() if name != "until"}, self.until, self.date])

    @property
    def read(self) -> bool:
        """Whether whoever sent it has read in words what it allows."""
        return self._seen == self.sum

    def refuse(self, details: Mapping[str, Any], why: str) -> None:
        """Mark the fields about which a decision was refused; details of no field here stand with `why`."""
        named = {place.removeprefix("remember."): list(words) for place, words in details.items()}
        self._take(BadGrant(why, named))

    def _take(self, bad: BadGrant) -> None:
        rest = dict(bad.problems)
        for row in self.rows:
            row.errors += rest.pop(f"conditions.{row.place}", [])
        self.errors |= {name: list(rest.pop(name)) for name in ("until", "uses") if name in rest}
        self.problem = " ".join([*([str(bad)] if str(bad) else []), *(why for each in rest.values() for why in each)])

    def _read_until(self) -> datetime | None:
        now = timezone.localtime()
        if self.until == HOUR:
            return now + timedelta(hours=1)
        if self.until == WEEK:
            return now + timedelta(days=7)
        if self.until == TODAY:
            return (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.until != DATE:
            return None
        try:
            found = parse_datetime(self.date)
        except ValueError:
            found = None
        if found is None:
            self.errors["until"] = ["Give a date and a time."]
            return None
        return found if timezone.is_aware(found) else timezone.make_aware(found)

    def _read_uses(self) -> int | None:
        if not self.uses:
            return None
        if self.uses.isascii() and self.uses.isdigit() and 1 <= int(self.uses) <= USES_MOST:
            return int(self.uses)
        self.errors["uses"] = [f"Give a number from 1 to {USES_MOST:,}, or leave it empty."]
        return None


def _rows(question: Mapping[str, Any], given: Mapping[str, str]) -> list[ConditionRow]:
    """Return a row for each value of the input, in the order in which the tool declares its fields."""
    tool = installed_tool(str(question["tool"]))
    declared = list(tool.input.model_fields) if tool else []
    preview = str(question.get("preview", ""))
    rows = [
        _row(ConditionRow(number, place, place_words(place, preview), part), given)
        for number, (place, part) in enumerate(parts_of(dict(question["input"])))
    ]

    def order(row: ConditionRow) -> int:
        name = row.place.split(".")[0]
        return declared.index(name) if name in declared else len(declared)

    return sorted(rows, key=order)


def _row(row: ConditionRow, given: Mapping[str, str]) -> ConditionRow:
    """Return this row with what was typed."""
    value = row.part.value
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    row.text = given.get(f"value{row.number}", shown).replace("\r\n", "\n")
    if len(canonical(value)) > VALUE_MOST:
        row.operator = Operator.ANY  # too long to be compared
    chosen = given.get(f"op{row.number}", "")
    if chosen in dict(row.operators):
        row.operator = Operator(chosen)
    return row
