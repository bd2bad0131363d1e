"""What waits in an inbox: run by `manage.py shell` of a site, against its database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from agents.engine.schema import schema_digest
from agents.plugins.shell.tools import run
from conversations.models import Output, State
from conversations.prompts.start import cancel_prompt
from tests.conversations.support import asking
from tests.engine.support import digest_of, shown_of


def asked(owner: str, commands: Sequence[str], **more: Any) -> list[int]:
    """Let these commands of a person wait, one expiring after the other."""
    return [_asked(User.objects.get(username=owner), text, 60 * n + 90, more) for n, text in enumerate(commands)]


def _asked(owner: User, text: str, minutes: int, more: dict[str, Any]) -> int:
    payload = {"command": text}
    known = {
        "title": "Run a command",
        "preview": "command",
        "digest": digest_of(run, payload),
        "schema": schema_digest(run.input),
        "facts": shown_of(run, payload).recorded["facts"],
        "expires_at": (timezone.now() + timedelta(minutes=minutes)).isoformat(),
    }
    return asking(owner, text, **known | more)[1].pk


def clear() -> None:
    """Stop every turn that waits."""
    for gate in Output.objects.pending().filter(prompt__state=State.WAITING).select_related("conversation__owner"):
        gate.prompt.refresh_from_db()
        if not gate.prompt.ended:
            cancel_prompt(gate.prompt_id, gate.conversation.owner)
