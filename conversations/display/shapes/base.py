"""The base of all shapes, and the types of fields that many have. What is absent is null.

A text that is there may be empty.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agents.engine.ledger import JSON


def _or_none(value: Any) -> Any:
    return None if value == "" else value


def _as_text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


Id = Annotated[int, Field(description="Its id.")]
Text = Annotated[str | None, BeforeValidator(_or_none)]
"""A text that may be absent, where an empty one would say nothing."""
Time = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": "string", "format": "date-time"})]
OptionalTime = Annotated[Time | None, BeforeValidator(_or_none)]


class Shape(BaseModel):
    """The base of all responses and events: only documented fields are allowed, and all of them are always present."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, populate_by_name=True)

    @classmethod
    def read(cls, source: object, /, **given: Any) -> Self:
        """Return the shape with these values, and in other fields the attributes of the same names of the source."""
        return cls.model_validate({n: given[n] if n in given else getattr(source, n) for n in cls.model_fields})

    def json_value(self) -> dict[str, JSON]:
        """Return it as JSON."""
        return self.model_dump(mode="json", by_alias=True)

    def text_value(self) -> str:
        """Return it as the text of a JSON value, in ASCII."""
        return json.dumps(self.json_value(), separators=(",", ":"))
