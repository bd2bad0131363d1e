"""The site's gatekeeper: whether an approved call may still start, asked of the database just before it does."""

from __future__ import annotations

from django.contrib.auth.models import User

from agents.engine.actors import Actor, Kind
from agents.engine.tools.gatekeeper import AskEverybody
from agents.engine.tools.tool import Tool
from conversations.approvals.permissions import DECIDE_OTHERS, DECIDE_OWN, requesters
from conversations.database.threads import Write
from conversations.models import Prompt

OWNER_GONE = "The owner of this conversation may no longer use the site, so nothing is done for them."
# The model reads these too, and is told nothing of approvals (S100). Whoever it was, the call is to be made again.
APPROVER_GONE = "Somebody who had a part in this call may no longer use the site, so nothing ran: call it again."
APPROVER_NOT_ALLOWED = "Permissions changed before this call ran, so nothing ran: call it again."
FOUR_EYES = "The rules for this tool changed before this call ran, so nothing ran: call it again."


class SiteGatekeeper(AskEverybody):
    """The gatekeeper of one prompt: there are no rules or grants, but permissions may have changed."""

    def __init__(self, write: Write, prompt: int) -> None:
        self._write, self._prompt = write, prompt

    async def holds(self, tool: Tool, by: str) -> str | None:
        """Return why an approval given by this actor no longer holds; None if it does."""
        return await self._write(self._holds, tool, by)

    def _holds(self, tool: Tool, by: str) -> str | None:
        prompt = Prompt.objects.select_related("conversation__owner").filter(pk=self._prompt).first()
        if prompt is None or not prompt.conversation.owner.is_active:
            return OWNER_GONE
        owner = prompt.conversation.owner
        actor = Actor.parse(by)
        if actor.kind != Kind.USER:
            return None
        person = User.objects.filter(pk=actor.pk, is_active=True).first() if actor.pk is not None else None
        if person is None:
            return APPROVER_GONE
        if not person.has_perm(DECIDE_OWN if person.pk == owner.pk else DECIDE_OTHERS):
            return APPROVER_NOT_ALLOWED
        return FOUR_EYES if tool.four_eyes and person.pk in requesters(owner.pk, prompt.asked_by_id) else None
