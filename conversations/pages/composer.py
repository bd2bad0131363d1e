"""Where one writes: what stands in the field, and what became of what was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe

from conversations.pages.forms import TIERS


@dataclass(frozen=True)
class Composer:
    """`action` is where a message goes, `text` what was typed and not taken, `problem` why not.

    `key` names the message that will be sent: sent twice, it is taken once.
    """

    action: str
    text: str = ""
    tier: str = "normal"
    problem: str = ""
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @property
    def tiers(self) -> tuple[tuple[str, str], ...]:
        """What can be chosen, with its label."""
        return TIERS
