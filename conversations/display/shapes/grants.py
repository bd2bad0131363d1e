"""Grants as programs get them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema

from agents.engine.grants.conditions import Operator
from agents.engine.grants.grant import Scope
from conversations.display.grant_words import grant_words
from conversations.display.shapes.base import Id, OptionalTime, Shape, Time
from conversations.models import Grant as GrantRow

AsOperator = Annotated[str, WithJsonSchema({"type": "string", "enum": [each.value for each in Operator]})]
AsScope = Annotated[str, WithJsonSchema({"type": "string", "enum": [each.value for each in Scope]})]


class Condition(Shape):
    """What must hold of one value of the input, such as `path` or `argv.1`. `any` has no value."""

    field: str
    operator: AsOperator
    value: Any = None


class Grant(Shape):
    """What a person granted: these calls of a tool run without asking them."""

    id: Id
    tool: str
    scope: AsScope
    conditions: list[Condition]
    conversation: Annotated[int | None, Field(description="Only there; null: in all conversations of the person.")]
    until: OptionalTime
    uses: Annotated[int | None, Field(description="How many times at most; null: any number of times.")]
    unattended: Annotated[bool, Field(description="Whether it also holds in turns that the system starts.")]
    words: Annotated[list[str], Field(description="The same in sentences.")]
    prompt: Annotated[int, Field(description="The turn in which it was given.")]
    given_at: Time
    used: int
    used_at: OptionalTime
    revoked_at: OptionalTime

    @classmethod
    def of(cls, row: GrantRow) -> Self:
        """Return this grant."""
        given = {
            "prompt": row.prompt_id,
            "conversation": row.conversation_id,
            "conditions": [Condition(**each) for each in row.conditions],
            "words": grant_words(row.said),
        }
        return cls.read(row, **given)
