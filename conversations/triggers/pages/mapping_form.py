"""The form of a mapping: for each field of a workflow where it comes from, tried on a sample of a payload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from agents.engine.ledger import JSON
from conversations.display.schema_form import label_for, properties_of
from conversations.models import Payload, Trigger
from conversations.prompts.startable import InvalidInput, Startable
from conversations.triggers import mapping as mappings
from conversations.triggers.inputs import checked_input

SAMPLE_SHOWN = 50_000
"""Characters of the last payload that the form shows. A longer one is still what the mapping is tried on."""
CHOOSE = "Choose whether this is a place in the payload, or what it is given always."
SOURCES = (("path", "From the payload, at"), ("value", "Always"), ("", "Nothing"))


@dataclass
class MappedField:
    """A field of the workflow: where it comes from, as typed, what the sample `gives` it as JSON, and what is wrong."""

    name: str
    label: str
    required: bool
    schema: Mapping[str, Any]
    source: str = ""
    typed: str = ""
    gives: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def entry(self) -> dict[str, JSON]:
        """What is stored of it."""
        return {"path": self.typed.strip()} if self.source == "path" else {"value": self._value()}

    def _value(self) -> JSON:
        """Return a fixed value: a text where the field takes one, else whatever JSON was typed."""
        kinds = {each.get("type") for each in (self.schema, *self.schema.get("anyOf", ()))}
        if "string" in kinds:
            return self.typed
        try:
            value: JSON = from_json(self.typed, allow_inf_nan=False)
        except ValueError:
            return self.typed
        return value


class MappingForm:
    """The form, as it is stored or was `posted`. `last`: the last payload, on which it is tried if none was pasted."""

    sources = SOURCES

    def __init__(
        self, trigger: Trigger, found: Startable, last: Payload | None, posted: Mapping[str, str] | None
    ) -> None:
        self._trigger, self._found, self._last = trigger, found, last
        required = found.schema.get("required", [])
        self.errors: list[str] = []
        self.sample = _shown(last) if posted is None else posted.get("sample", "")
        self.fields = [
            MappedField(name, label_for(name, schema.get("title", "")), name in required, schema)
            for name, schema in properties_of(found.schema).items()
        ]
        for each in self.fields:
            if posted is not None:
                each.source, each.typed = posted.get(f"source-{each.name}", ""), posted.get(f"typed-{each.name}", "")
            elif (entry := trigger.mapping.get(each.name)) is not None:
                each.source = "path" if "path" in entry else "value"
                value = entry.get("path", entry.get("value"))
                each.typed = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            elif each.required:
                each.source = "path"

    @property
    def mapping(self) -> dict[str, JSON]:
        """What is stored."""
        return {each.name: each.entry for each in self.fields if each.source}

    @property
    def can_try(self) -> bool:
        """Whether there is something to try it on, and something to try."""
        return bool(self.sample.strip() or self._last) and any(each.typed for each in self.fields)

    def check(self) -> None:
        """Check what was typed, on the sample if there is one. Raises InvalidInput by field."""
        if left := [each.name for each in self.fields if each.typed.strip() and not each.source]:
            raise InvalidInput({name: [CHOOSE] for name in left})
        mappings.check(self.mapping, self._found)
        if self.sample.strip() or self._last:
            given = mappings.applied(self.mapping, self._payload())
            checked_input(self._found, given, self._trigger.owner)

    def try_it(self) -> None:
        """Show at each field what the sample gives it, or what is wrong."""
        try:
            self.check()
        except InvalidInput as error:
            self.refuse(error)

    def refuse(self, error: InvalidInput) -> None:
        """Show what is wrong at the fields, and what the others are given."""
        by_name = {each.name: each for each in self.fields}
        for place, why in error.fields.items():
            name = place.removeprefix("mapping.").partition(".")[0]
            (by_name[name].errors if name in by_name else self.errors).extend(why)

    def shown(self) -> list[MappedField]:
        """Return the fields with what the sample gives each of them."""
        try:
            payload = self._payload()
        except InvalidInput:
            return self.fields
        for each in self.fields:
            if each.source and each.typed:
                try:
                    value = mappings.applied({each.name: each.entry}, payload)[each.name]
                except InvalidInput:
                    continue
                each.gives = json.dumps(value, ensure_ascii=False)
        return self.fields

    def _payload(self) -> JSON:
        if self.sample.strip():
            return mappings.read_payload(self.sample.encode("utf-8", "replace"))
        if self._last is None:
            raise InvalidInput({"": [mappings.NONE_YET]})
        return mappings.read_payload(bytes(self._last.content))


def _shown(last: Payload | None) -> str:
    """Return the last payload as people read JSON; "" if it is none, or too long."""
    if last is None:
        return ""
    try:
        text = json.dumps(mappings.read_payload(bytes(last.content)), ensure_ascii=False, indent=2)
    except InvalidInput:
        return ""
    return text if len(text) <= SAMPLE_SHOWN else ""
