"""The composer: the message field, the form that it sends, and why its last message was not sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import ClassVar

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from agents.engine.ledger import valid_text
from conversations.files.uploads import FILES_MOST, Upload, read_uploads
from conversations.prompts.idempotency import KEY_MOST
from conversations.prompts.start import INPUT_MOST, BadInput

TIERS = (("normal", "Normal"), ("high", "High"))


class Message(forms.Form):
    """A message with its files, and the tier of the model that should answer it."""

    input = forms.CharField(
        required=False,  # a message may consist of files alone
        strip=False,
        max_length=INPUT_MOST,
        error_messages={
            "max_length": f"A message may have at most {INPUT_MOST:,} characters. Send this one in parts.",
        },
    )
    model = forms.ChoiceField(choices=TIERS, initial="normal", required=False)

    @property
    def text(self) -> str:
        """What was typed, valid or not: it stays in the field."""
        return str(self.data.get("input", ""))

    @property
    def tier(self) -> str:
        """The chosen tier; normal if none was chosen."""
        chosen = str(self.data.get("model", "normal"))
        return chosen if chosen in dict(TIERS) else "normal"

    @property
    def key(self) -> str:
        """The page's idempotency key for this message; "" if it sent none."""
        return valid_text(str(self.data.get("key", "")))[:KEY_MOST]

    @property
    def brought(self) -> int:
        """The number of files in the message."""
        return len(self._sent)

    def checked(self) -> str:
        """Return the validated text. Raises BadInput."""
        for errors in self.errors.values():
            raise BadInput(str(errors[0]))
        return self.text

    def uploads(self) -> list[Upload]:
        """Return the validated files. Raises BadFile."""
        return read_uploads(self._sent)

    @property
    def _sent(self) -> list[UploadedFile[bytes]]:
        return self.files.getlist("files")


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
    tiers: ClassVar = TIERS
    files_most: ClassVar = FILES_MOST
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @property
    def file_mb(self) -> int:
        """The maximum size of one file, in MB."""
        return settings.AGENTSITE_UPLOAD_MB
