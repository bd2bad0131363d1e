"""The composer: the message field, and why its last message was not sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe

from django.conf import settings

from conversations.files.uploads import FILES_MOST
from conversations.pages.chat.forms import TIERS


@dataclass(frozen=True)
class Composer:
    """`action` is the URL a message is posted to, `text` what was typed but not sent, `problem` why not.

    `brought`: how many files came with it; only a page that is still open has them. `key` names the next message: if
    it is sent twice, it is accepted once.
    """

    action: str
    text: str = ""
    tier: str = "normal"
    problem: str = ""
    brought: int = 0
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @property
    def tiers(self) -> tuple[tuple[str, str], ...]:
        """The model tiers to choose from, with their labels."""
        return TIERS

    @property
    def files_most(self) -> int:
        """The maximum number of files in one message."""
        return FILES_MOST

    @property
    def file_mb(self) -> int:
        """The maximum size of one file, in MB."""
        return settings.AGENTSITE_UPLOAD_MB
