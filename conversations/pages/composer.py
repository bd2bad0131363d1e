"""Where one writes: what stands in the field, and what the button does."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.models import Prompt
from conversations.pages.forms import TIERS


@dataclass(frozen=True)
class Composer:
    """`action` is where a message goes. `active` is the turn that runs or waits: then the button stops it.

    `text` is what was typed and not taken, `problem` why not.
    """

    action: str
    active: Prompt | None = None
    text: str = ""
    tier: str = "normal"
    problem: str = ""

    @property
    def tiers(self) -> tuple[tuple[str, str], ...]:
        """What can be chosen, with its label."""
        return TIERS
