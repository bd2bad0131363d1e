"""Which blueprints stood in the rounds of turns, as their record says: by the names and versions that they had then."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from agents.engine.ledger import Step as Recorded
from agents.plugins.blueprints.plugin import Blueprints, Named, Standing
from conversations.models import Prompt, Step
from conversations.models.step import OfPlugin

STATE = f'{{"plugin":"{Blueprints.name}"'
"""How the steps begin that record it."""


def stood_in(prompts: Iterable[Prompt]) -> dict[int, tuple[Named, ...]]:
    """Return the blueprints that stood in any round of those of these turns that have ended, by the turns' ids."""
    ended = [prompt for prompt in prompts if prompt.ended and prompt.rounds]
    if not ended:
        return {}
    states = Step.objects.alias(of=OfPlugin("payload")).filter(type="state", of=STATE, prompt__in=ended)
    states = states.filter(conversation__in={prompt.conversation_id for prompt in ended}).order_by("seq")
    found: dict[int, dict[tuple[int, int], Named]] = {}
    for prompt, payload in states.values_list("prompt", "payload"):
        found.setdefault(prompt, {}).update({(each.id, each.version): each for each in _found(json.loads(payload))})
    return {prompt: tuple(each.values()) for prompt, each in found.items()}


def stands_after(steps: Sequence[Recorded]) -> list[Named]:
    """Return the blueprints that stood in the last round that a turn with these steps had."""
    states = (step.payload for step in reversed(steps) if step.type == "state")
    return next((_found(state) for state in states if state.get("plugin") == Blueprints.name), [])


def _found(state: dict[str, Any]) -> list[Named]:
    """Return what a state names; nothing if it was redacted, or another version of the site has written it."""
    try:
        return Standing.model_validate(state.get("value", {})).found
    except ValidationError:
        return []
