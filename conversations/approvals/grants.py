"""Grants on a site: giving one with an approval, finding the one that covers a call, using it up, and revoking it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import F
from django.utils import timezone

from agents.discovery import installed_tool
from agents.engine.complaints import sentence
from agents.engine.grants import conditions
from agents.engine.grants.conditions import Condition
from agents.engine.grants.grant import Asked, Scope, callers, not_grantable, warnings, why_not
from agents.engine.grants.grant import Grant as Said
from agents.engine.paths import ancestors
from agents.engine.schema import schema_digest
from agents.engine.secrets import hide_in
from agents.engine.tools.tool import Tool
from agents.engine.view import View
from conversations.ledger.reading import engine_step
from conversations.ledger.uses import register_usable
from conversations.models import Grant, Output, Step

if TYPE_CHECKING:
    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)

GRANTS_MOST = 200
"""Grants of one person that stand at a time. Each is looked at for each call of its tool."""
USES_MOST = 1_000_000
UNTIL_MOST = timedelta(days=36_525)
ENDED_RECENTLY, WHYS_MOST = timedelta(days=7), 2
"""Of how many grants a card says why they do not cover its call, and how long ago they may have ended."""
USED_UP = "It was used as often as you said."

NOT_YOURS = "Only the owner of this conversation can grant calls in it. Approve this one alone."
TOO_MANY = f"You have {GRANTS_MOST} grants, as many as one person can have. Revoke some first, under My grants."


class BadGrant(ValueError):
    """A grant that cannot be given. `problems`: what is wrong, by field; "" for what concerns all of it."""

    def __init__(self, message: str, problems: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(message)
        self.problems = dict(problems or {})


@dataclass(frozen=True)
class Remember:
    """What a person wants to be remembered of an approval. `this_conversation`: it holds only there.

    `conditions` belong to the scope FIELDS. For the rest see `agents.engine.grants.grant.Grant`.
    """

    scope: Scope
    conditions: tuple[Condition, ...] = field(default=())
    this_conversation: bool = False
    until: datetime | None = None
    uses: int | None = None
    unattended: bool = False

    def grant(self, asked: Asked) -> Said:
        """Return the grant of calls like this one. Raises BadGrant."""
        question = asked.question
        if why := not_grantable(question, self.scope):
            raise BadGrant(why)
        if wrong := self._problems(question):
            raise BadGrant("", {name: [sentence(why)] for name, why in wrong.items()})
        exact = self.scope is Scope.EXACT
        return Said(
            tool=question["tool"],
            schema=question["schema"],
            scope=self.scope,
            digest=question["digest"] if exact else "",
            conditions=() if exact else self.conditions,
            warnings=tuple(warnings(question)),
            callers=asked.callers,
            conversation=asked.conversation if self.this_conversation else None,
            until=self.until,
            uses=self.uses,
            unattended=self.unattended,
        )

    def _problems(self, question: Mapping[str, Any]) -> dict[str, str]:
        """Return what is wrong, by field. Those of conditions are named after their place in the input."""
        found = {}
        if self.until is not None and self.until <= timezone.now():
            found["until"] = "choose a time that is still to come"
        elif self.until is not None and self.until - timezone.now() > UNTIL_MOST:
            found["until"] = "choose a time within the next hundred years, or none"
        if self.uses is not None and not 1 <= self.uses <= USES_MOST:
            found["uses"] = f"choose a number from 1 to {USES_MOST:,}"
        if self.scope is Scope.EXACT:
            return found | ({"conditions": "the exact call has none"} if self.conditions else {})
        wrong = conditions.problems(self.conditions, question["input"])
        tool = installed_tool(question["tool"])
        if not wrong and tool and (why := tool.refused_grant(self.conditions)):
            wrong = {"": why}
        return found | {f"conditions.{place}" if place else "conditions": why for place, why in wrong.items()}


def give(said: Said, by: User, output: Output) -> Grant:
    """Store a grant that was given with the approval of this output, in the open transaction. Raises BadGrant."""
    if by.pk != output.conversation.owner_id:
        raise BadGrant(NOT_YOURS)
    if Grant.objects.filter(user=by).standing().count() >= GRANTS_MOST:
        raise BadGrant(TOO_MANY)
    row = Grant(user=by, prompt_id=output.prompt_id, path=output.path, conversation_id=said.conversation)
    for name in ("tool", "schema", "digest", "until", "uses", "unattended", "version"):
        setattr(row, name, getattr(said, name))
    row.scope, row.warnings, row.callers = said.scope.value, list(said.warnings), list(said.callers)
    row.conditions = hide_in([each.recorded() for each in said.conditions])
    row.save()
    return row


def asked_of(rows: Sequence[Output]) -> dict[int, Asked]:
    """Return what is asked at the gates of these outputs, by output. All are looked up in one query.

    They are for cards, so they are asked as calls for which somebody is there.
    """
    places = {row.pk: [row.gate_path, *ancestors(row.path)] for row in rows}
    steps = Step.objects.filter(
        conversation__in={row.conversation_id for row in rows},
        prompt__in={row.prompt_id for row in rows},
        path__in={path for paths in places.values() for path in paths},
        type="action_call",
    )
    views = defaultdict[int, View](View)
    for step in steps.order_by("conversation_id", "prompt_id", "seq"):
        views[step.prompt_id].add(engine_step(step))
    found = {}
    for row in rows:
        view = views[row.prompt_id]
        if gate := view.call(row.gate_path):
            question = gate.payload["payload"]
            found[row.pk] = Asked(question, callers(view, row.path), False, timezone.now(), row.conversation_id)
    return found


def why_asked(rows: Sequence[Output], owner: int) -> dict[int, list[str]]:
    """Return why a person is asked about these calls of theirs although they have grants for the tool, by output.

    `owner` is the primary key of that person.
    """
    if not rows:
        return {}
    grants = defaultdict[str, list[Grant]](list)
    recent = timezone.now() - ENDED_RECENTLY
    mine = Grant.objects.filter(user_id=owner, tool__in={row.tool for row in rows})
    for grant in mine.exclude(revoked_at__lt=recent).exclude(until__lt=recent).order_by("-pk"):
        grants[grant.tool].append(grant)
    asked = asked_of([row for row in rows if row.tool in grants]) if grants else {}
    found = {}
    for row in rows:
        tool = installed_tool(row.tool)
        if row.pk in asked and tool:
            told = [uncovered(grant, tool, asked[row.pk]) or USED_UP for grant in grants[row.tool]]
            found[row.pk] = list(dict.fromkeys(told))[:WHYS_MOST]
    return found


def covering(owner: User, tool: Tool, asked: Asked) -> Grant | None:
    """Return a grant of this person that covers the call; None if none does. The oldest is used up first."""
    for grant in Grant.objects.filter(user=owner, tool=tool.name).standing().order_by("pk"):
        if uncovered(grant, tool, asked) is None:
            return grant
    return None


def uncovered(grant: Grant, tool: Tool, asked: Asked) -> str | None:
    """Return why a grant does not cover a call of this tool, as the tool is now; None if it does. In doubt it does not.

    Whether it is used up says the record that uses it.
    """
    try:
        said = grant.said
        if grant.revoked_at is not None:
            return "You revoked it."
        if schema_digest(tool.input) != said.schema:
            return "The tool has changed since it was given."
        if not _still_grants(tool, said, asked):
            return "Calls like this one are always asked about."
        return why_not(said, asked) or (tool.refused_grant(said.conditions) if said.conditions else None)
    except Exception:
        logger.exception("grant %s was not looked at to its end, so it covers nothing", grant.pk)
        return "It could not be read."


def _still_grants(tool: Tool, said: Said, asked: Asked) -> bool:
    now = tool.grants(asked.question.get("facts") or [])
    return now is Scope.FIELDS or now is said.scope


def revoke(user: User, pk: int) -> Grant:
    """Revoke a grant of this person, once. It holds for the next call, also of a turn that runs.

    Raises Grant.DoesNotExist if they have no such grant.
    """
    grant = Grant.objects.get(user=user, pk=pk)
    Grant.objects.filter(pk=grant.pk, revoked_at=None).update(revoked_at=timezone.now())
    grant.refresh_from_db()
    return grant


def take(pk: int) -> bool:
    """Use a grant once, in the open transaction, if it can still be used: of two that want the last use, one has it."""
    standing = Grant.objects.filter(pk=pk).standing()
    return standing.update(used=F("used") + 1, used_at=timezone.now()) == 1


def give_back(pk: int) -> None:
    """Give one use back, in the open transaction."""
    Grant.objects.filter(pk=pk, used__gt=0).update(used=F("used") - 1)


def register() -> None:
    """Let decisions use grants up. Called once the apps are loaded."""
    register_usable("grant", take, give_back)
