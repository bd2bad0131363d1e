"""The composer: the message field, what was sent from it, and why its last message was not accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest

from conversations.files.uploads import FILES_MOST, Upload, read_uploads
from conversations.prompts.idempotency import key_of_form
from conversations.prompts.start import BadInput

TIERS = (("normal", "Normal"), ("high", "High"))
GIVEN_MOST = 2_000
"""Characters of a message that a link can put into the field."""


class Message:
    """What was sent from the message field: a text, files, and the tier of the model that should answer.

    `key` is the page's idempotency key for it; "" if it sent none. `chosen`: the id of the system prompt for the
    conversation that begins with it; "" if none was chosen.
    """

    def __init__(self, request: HttpRequest) -> None:
        sent = request.POST
        self.text = sent.get("input", "")
        self.tier = sent.get("model", "normal")
        self.key = key_of_form(sent.get("key", ""))
        self.chosen = sent.get("system_prompt", "")
        self.files = request.FILES.getlist("files")

    def uploads(self) -> list[Upload]:
        """Return the validated files. Raises BadFile, and BadInput for a tier that there is not."""
        if self.tier not in dict(TIERS):
            raise BadInput("There is no such model: choose another one.")
        return read_uploads(self.files)


@dataclass(frozen=True)
class Composer:
    """`action` is the URL a message is posted to, `text` what was typed but not sent, `problem` why not.

    `brought`: how many files came with it; only a page that is still open has them. `status` is that of the answer.
    `fresh`: an open page needs another key, because its own belongs to a message that was accepted. `key` names the
    next message: if it is sent twice, it is accepted once. `later`: it can be sent once the turn has ended.
    """

    action: str
    text: str = ""
    tier: str = "normal"
    problem: str = ""
    brought: int = 0
    status: int = 200
    fresh: bool = True
    later: bool = False
    tiers: ClassVar = TIERS
    files_most: ClassVar = FILES_MOST
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @classmethod
    def given(cls, action: str, request: HttpRequest) -> Composer:
        """Return the composer with the message that the page's address gives, if any. Nothing is sent by that."""
        return cls(action, request.GET.get("message", "")[:GIVEN_MOST])

    @property
    def file_mb(self) -> int:
        """The maximum size of one file, in MB."""
        return settings.AGENTSITE_UPLOAD_MB
