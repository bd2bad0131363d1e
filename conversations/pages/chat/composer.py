"""Where one writes: what stands in the field, and what became of what was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe

from django.conf import settings

from conversations.files.uploads import FILES_MOST
from conversations.pages.chat.forms import TIERS


@dataclass(frozen=True)
class Composer:
    """`action` is where a message goes, `text` what was typed and not taken, `problem` why not.

    `brought`: how many files came with it; only a page that is open has them still. `key` names the message that will
    be sent: sent twice, it is taken once.
    """

    action: str
    text: str = ""
    tier: str = "normal"
    problem: str = ""
    brought: int = 0
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @property
    def tiers(self) -> tuple[tuple[str, str], ...]:
        """What can be chosen, with its label."""
        return TIERS

    @property
    def files_most(self) -> int:
        """Files of one message."""
        return FILES_MOST

    @property
    def file_mb(self) -> int:
        """The size of one file, at most."""
        return settings.AGENTSITE_UPLOAD_MB
