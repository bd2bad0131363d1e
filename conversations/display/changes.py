"""Changed fields: what differs between two inputs of the same tool or policy, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.references import is_secret
from conversations.approvals.edits import same_json
from conversations.display.call import kinds_of_input
from conversations.display.diff import Diff, DiffRow, diff
from conversations.display.schema_form import SchemaForm
from conversations.display.value import ANY, as_text, kinds_in

SHORT_MOST = 120
"""Characters of both sides together that stand side by side in one line."""


@dataclass(frozen=True)
class FieldChange:
    """One field that differs. `old` and `new` are its texts; None where an input does not have the field."""

    name: str
    old: str | None
    new: str | None

    @property
    def short(self) -> bool:
        """Whether both sides are shown in one line."""
        both = (self.old or "") + (self.new or "")
        return len(both) <= SHORT_MOST and "\n" not in both

    @cached_property
    def diff(self) -> Diff | None:
        """The change line by line; None if it is too large to be shown."""
        old, new = self.old or "", self.new or ""
        if not old.endswith("\n") and not new.endswith("\n"):
            # A field is no file: that its last line has no end need not be said.
            old, new = f"{old}\n" if old else "", f"{new}\n" if new else ""
        change = Change(path=self.name, before=old, after=new)
        return None if change.too_large else diff(change)

    @property
    def sides(self) -> tuple[DiffRow | None, DiffRow | None]:
        """The two sides of a short change, with the words marked that differ; None for an empty or missing one."""
        rows = [row for hunk in self.diff.hunks for row in hunk.rows] if self.diff else []
        found = {row.kind: row for row in rows}
        return found.get("del"), found.get("add")


def changed_fields(
    old: Mapping[str, JSON], new: Mapping[str, JSON], kinds: Mapping[str, frozenset[str]]
) -> list[FieldChange]:
    """Return the fields that differ between two inputs, in the order of the new one. `kinds`: see `as_text`."""
    return [
        FieldChange(name, _text(old, name, kinds), _text(new, name, kinds))
        for name in dict.fromkeys([*new, *old])
        if (name in old) != (name in new) or not same_json(old.get(name), new.get(name))
    ]


def changes_of_call(tool: str, old: Mapping[str, JSON], new: Mapping[str, JSON]) -> list[FieldChange]:
    """Return the fields that differ between two inputs of this tool or policy."""
    return changed_fields(old, new, kinds_of_input(tool))


def typed_changes(form: SchemaForm) -> list[FieldChange]:
    """Return the fields that were typed otherwise than they stood in the form, as far as they can be read.

    Secrets are left out: what is typed into such a field is not shown again.
    """
    if form.posted is None:
        return []
    typed = replace(form, errors={})
    payload = typed.payload()
    hidden = {*_secrets(form.schema), *(place.partition(".")[0] for place in typed.errors), *typed.errors}
    old, new = ({name: value for name, value in each.items() if name not in hidden} for each in (form.input, payload))
    return changed_fields(old, new, kinds_in(form.schema))


def _secrets(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that are secrets, or may hold some."""
    definitions = schema.get("$defs", {})
    return [name for name, each in schema.get("properties", {}).items() if _holds_secret(each, definitions, set())]


def _holds_secret(schema: object, definitions: Mapping[str, Any], followed: set[str]) -> bool:
    if isinstance(schema, Mapping):
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        inner: list[object] = list(schema.values())
        if name in definitions and name not in followed:
            followed.add(name)
            inner.append(definitions[name])
        return is_secret(schema) or _any_holds(inner, definitions, followed)
    return isinstance(schema, Sequence) and not isinstance(schema, str) and _any_holds(schema, definitions, followed)


def _any_holds(schemas: Iterable[object], definitions: Mapping[str, Any], followed: set[str]) -> bool:
    return any(_holds_secret(each, definitions, followed) for each in schemas)


def _text(payload: Mapping[str, JSON], name: str, kinds: Mapping[str, frozenset[str]]) -> str | None:
    return as_text(payload[name], kinds.get(name, ANY)) if name in payload else None
