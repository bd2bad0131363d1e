"""The site's gatekeeper: whether a grant covers a call, and whether a call may still start when it is about to."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from agents.engine.actors import Actor, Kind
from agents.engine.grants.grant import Asked
from agents.engine.tools.gatekeeper import Gatekeeper, GateVerdict
from agents.engine.tools.tool import Risk, Tool, ToolCall
from conversations.approvals.grants import covering, uncovered
from conversations.approvals.permissions import DECIDE_OTHERS, DECIDE_OWN, requesters
from conversations.database.threads import Write
from conversations.models import Grant, Prompt

OWNER_GONE = "The owner of this conversation may no longer use the site, so nothing is done for them."
# The model reads these too, and is told nothing of approvals (S100). Whoever it was, the call is to be made again.
APPROVER_GONE = "Somebody who had a part in this call may no longer use the site, so nothing ran: call it again."
APPROVER_NOT_ALLOWED = "Permissions changed before this call ran, so nothing ran: call it again."
GRANT_GONE = "What allowed this call no longer does, so nothing ran: call it again."
FOUR_EYES = "The rules for this tool changed before this call ran, so nothing ran: call it again."


class SiteGatekeeper(Gatekeeper):
    """The gatekeeper of one prompt: the grants of its owner lift gates, and permissions may have changed.

    `settled` reads what only people change, and keeps it until they do. It serves calls that only read and that nobody
    had to approve; all others look anew.
    """

    def __init__(self, write: Write, prompt: int, owner: int, settled: Write | None = None) -> None:
        self._write, self._prompt, self._owner, self._settled = write, prompt, owner, settled or write

    async def decide(self, tool: Tool, call: ToolCall[Any, Any], asked: Asked) -> GateVerdict:
        """Allow the call if a grant of the owner covers it; else people are asked."""
        return await self._write(self._decide, tool, asked)

    async def holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
        """Return why an approval given by this actor no longer holds; None if it does."""
        if by:
            return await self._write(self._holds, tool, by, asked)
        look = self._settled if tool.risk is Risk.READ else self._write
        return None if await look(may_use_site, self._owner) else OWNER_GONE

    def _decide(self, tool: Tool, asked: Asked) -> GateVerdict:
        prompt = self._read()
        if prompt is None or not prompt.conversation.owner.has_perm(DECIDE_OWN):
            return GateVerdict()
        grant = covering(prompt.conversation.owner, tool, asked._replace(conversation=prompt.conversation_id))
        if grant is None:
            return GateVerdict()
        return GateVerdict("allow", grant.actor, uses=(grant.actor,), record={"grant": grant.said.recorded()})

    def _read(self) -> Prompt | None:
        return Prompt.objects.select_related("conversation__owner").filter(pk=self._prompt).first()

    def _holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
        prompt = self._read()
        if prompt is None or not prompt.conversation.owner.is_active:
            return OWNER_GONE
        owner = prompt.conversation.owner
        actor = Actor.parse(by)
        if actor.kind == Kind.GRANT:
            return None if asked and self._still_granted(prompt, tool, actor, asked) else GRANT_GONE
        if actor.kind != Kind.USER:
            return None
        person = User.objects.filter(pk=actor.pk, is_active=True).first() if actor.pk is not None else None
        if person is None:
            return APPROVER_GONE
        if not person.has_perm(DECIDE_OWN if person.pk == owner.pk else DECIDE_OTHERS):
            return APPROVER_NOT_ALLOWED
        return FOUR_EYES if tool.four_eyes and person.pk in requesters(owner.pk, prompt.asked_by_id) else None

    def _still_granted(self, prompt: Prompt, tool: Tool, by: Actor, asked: Asked) -> bool:
        """Whether a grant by which a call was decided is still there, and would allow it now, used up or not."""
        owner = prompt.conversation.owner
        grant = Grant.objects.filter(user=owner, pk=by.pk).first() if by.pk is not None else None
        now = asked._replace(conversation=prompt.conversation_id)
        return grant is not None and owner.has_perm(DECIDE_OWN) and uncovered(grant, tool, now) is None


def may_use_site(user: int) -> bool:
    """Whether this person exists and was not deactivated."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT is_active FROM {User._meta.db_table} WHERE id = %s", [user])
        row = cursor.fetchone()
    return bool(row and row[0])
