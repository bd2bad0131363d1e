"""What a person wrote of a form in their own words, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.display.schema_form import FormField


@dataclass(frozen=True)
class Description:
    """The text of a description.

    `problem`: why nothing was filled in. `filled` are the fields that were, `not_fit` those for which there was a value
    that they do not accept, and `missing` those that still need one.
    """

    text: str = ""
    problem: str = ""
    filled: tuple[FormField, ...] = ()
    not_fit: tuple[FormField, ...] = ()
    missing: tuple[FormField, ...] = ()
