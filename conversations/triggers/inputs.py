"""Inputs: what a workflow that a trigger starts is given each time."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User

from agents.engine.ledger import JSON
from agents.engine.schema import valid_texts
from agents.engine.secrets import hide_in
from conversations.prompts import startable
from conversations.prompts.startable import InvalidInput, Startable

NOT_RECORDED = "A secret of the site stands in this, and must not be recorded."


def checked_input(found: Startable, input: dict[str, JSON], owner: User) -> dict[str, JSON]:
    """Return the input with which a run is started each time. Raises InvalidInput, also for files and secrets."""
    check_alone(found)
    accepted = startable.checked(found, input, owner)
    if accepted.secrets or accepted.files:
        why = "Its value is not kept after one run, so it cannot be used each time."
        raise InvalidInput({name: [why] for name in (*accepted.secrets, *accepted.files)})
    valid = cast(dict[str, JSON], valid_texts(input))
    check_no_secret(valid)
    return valid


def check_alone(found: Startable) -> None:
    """Raise InvalidInput for what cannot be started while nobody is there."""
    if not found.schedulable:
        raise InvalidInput({"": [f"{found.title} cannot be started while nobody is there."]})


def check_no_secret(given: dict[str, JSON]) -> None:
    """Raise InvalidInput for what has a secret of the site in it."""
    if hide_in(given) != given:
        raise InvalidInput({"": [NOT_RECORDED]})
