"""What a model may say of a form: the fields that it can fill, and which of its values fit them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from agents.engine.ledger import JSON, canonical
from agents.engine.references import secret_keys
from agents.engine.schema import problems, schema_of
from workflows.files import upload_fields

VALUE_MOST = 10_000
"""Maximum length of a value as JSON, in characters. A longer one does not come from a description."""


class Answer(BaseModel):
    """The fields that the description gives a value for."""

    model_config = ConfigDict(extra="allow")
    form: ClassVar[dict[str, JSON]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **more: Any) -> dict[str, JSON]:
        """Return the schema of the fields. An answer that does not keep to it is taken all the same, and sifted."""
        return deepcopy(cls.form)


@cache
def answer_of(input: type[BaseModel]) -> type[Answer]:
    """Return the form of an answer that fills in an input of this model."""
    return type("Filled", (Answer,), {"__doc__": Answer.__doc__, "form": fields_to_fill(input)})


@cache
def fields_to_fill(input: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an input without its secrets and uploaded files, of which no field is required."""
    schema = deepcopy(schema_of(input))
    schema.pop("required", None)
    known = schema.get("properties", {})
    left_out = {*secret_keys(input), *upload_fields(input)}
    return schema | {"properties": {name: each for name, each in known.items() if name not in left_out}}


@dataclass(frozen=True)
class Sifted:
    """What is left of an answer: `values` by the names of their fields, and the fields whose values do `not_fit`."""

    values: Mapping[str, JSON] = field(default_factory=dict)
    not_fit: tuple[str, ...] = ()


def sift(input: type[BaseModel], answer: Mapping[str, JSON]) -> Sifted:
    """Return what of this answer belongs into a form for this model: names that it does not have, and secrets, do not.

    Each value is judged alone: what is wrong with one drops no other.
    """
    told = {name: value for name, value in answer.items() if value != ""}  # a model that has nothing to say
    given = {name: told[name] for name in fields_to_fill(input)["properties"] if name in told}
    wrong = _wrong(input, given)
    bad = tuple(name for name, value in given.items() if name in wrong or len(canonical(value)) > VALUE_MOST)
    return Sifted({name: value for name, value in given.items() if name not in bad}, bad)


def _wrong(input: type[BaseModel], given: dict[str, JSON]) -> set[str]:
    """Return the fields that do not accept their value."""
    try:
        return {place.partition(".")[0] for place, _ in problems(input, given)}
    except Exception:  # noqa: BLE001 - a validator may raise anything for a part of its input: the form is checked again
        return set()
