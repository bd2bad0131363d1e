"""What a grant says, and whether it covers a call. One function decides it, wherever it is asked: `why_not`.

It is asked when a gate is opened, again when the call is about to start, by cards that say why a person is asked all
the same, and by the check of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from agents.engine.grants.conditions import Condition, unmet
from agents.engine.grants.words import place_words
from agents.engine.ledger import JSON
from agents.engine.paths import ancestors, parent
from agents.engine.view import View, opens_gate

VERSION = 1
"""The version of what conditions mean. A grant that was given under another one covers nothing."""


class Scope(StrEnum):
    """Which calls of its tool a grant covers."""

    EXACT = "exact"  # only the call that was approved: its digest is that of the grant
    FIELDS = "fields"  # those whose input meets the conditions


class Asked(NamedTuple):
    """A call that a person is asked about, or would be. `question` is the payload of its gate, as it is recorded.

    `callers`: the policies that lead to it, the turn's root first. `unattended`: whether nobody is there for the turn.
    `conversation`: None where it is not known, as in a ledger from elsewhere.
    """

    question: Mapping[str, Any]
    callers: tuple[str, ...]
    unattended: bool
    now: datetime
    conversation: int | None = None


@dataclass(frozen=True)
class Grant:
    """What a person granted: calls of a tool, with the input schema that it had, may run without asking them.

    scope: with EXACT those with this `digest`, with FIELDS those whose input meets the `conditions`. warnings: the
    facts on the card where it was given that say what is not so, such as "Not shown as a diff": a call with another one
    is not covered. callers: who may ask for them, as on that card. conversation, until: only there, only before that
    time. uses: at most so many. unattended: also when nobody is there.
    """

    tool: str
    schema: str
    scope: Scope
    digest: str = ""
    conditions: tuple[Condition, ...] = ()
    warnings: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    conversation: int | None = None
    until: datetime | None = None
    uses: int | None = None
    unattended: bool = False
    version: int = VERSION

    def recorded(self) -> dict[str, JSON]:
        """Return it as it stands in the record of a decision."""
        said: dict[str, JSON] = {
            "version": self.version,
            "tool": self.tool,
            "schema": self.schema,
            "scope": self.scope.value,
            "warnings": list(self.warnings),
            "callers": list(self.callers),
        }
        if self.scope is Scope.EXACT:
            said["digest"] = self.digest
        else:
            said["conditions"] = [each.recorded() for each in self.conditions]
        bounds = {
            "conversation": self.conversation,
            "until": self.until and self.until.isoformat(),
            "uses": self.uses,
            "unattended": self.unattended or None,
        }
        return said | {name: value for name, value in bounds.items() if value is not None}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Grant:
        """Return the grant of a record. Raises KeyError, TypeError or ValueError for what is none."""
        return cls(
            tool=str(said["tool"]),
            schema=str(said["schema"]),
            scope=Scope(said["scope"]),
            digest=str(said.get("digest", "")),
            conditions=tuple(Condition.of(each) for each in said.get("conditions", ())),
            warnings=tuple(map(str, said["warnings"])),
            callers=tuple(map(str, said["callers"])),
            conversation=said.get("conversation"),
            until=datetime.fromisoformat(said["until"]) if said.get("until") else None,
            uses=said.get("uses"),
            unattended=said.get("unattended") is True,
            version=int(said["version"]),
        )


def why_not(grant: Grant, asked: Asked) -> str | None:
    """Return why this grant does not cover this call, in a sentence for whoever gave it; None if it does."""
    question, exact = asked.question, grant.scope is Scope.EXACT
    if question.get("tool") != grant.tool:
        return "It is about another tool."
    if why := not_grantable(question, grant.scope):
        return why
    bounds = {
        "It was given under an earlier version of the site.": grant.version != VERSION,
        "The tool has changed since it was given.": question.get("schema") != grant.schema,
        "Its time is over.": grant.until is not None and asked.now >= grant.until,
        "It holds only in another conversation.": grant.conversation is not None
        and asked.conversation not in (None, grant.conversation),
        "It does not hold when nobody is there.": asked.unattended and not grant.unattended,
        "It holds only for calls that come about in the same way as the one it was given for.": (
            asked.callers != grant.callers
        ),
        "It covers one exact call only.": exact and not (grant.digest and question.get("digest") == grant.digest),
    }
    if why := next((why for why, out in bounds.items() if out), None):
        return why
    return None if exact else _unmet(grant, question)


def _unmet(grant: Grant, question: Mapping[str, Any]) -> str | None:
    if new := [fact for fact in warnings(question) if fact not in grant.warnings]:
        return f"It was given without this: {new[0]}"
    place = unmet(grant.conditions, question["input"])
    if place is None:
        return None
    return f"It does not allow this value of {place_words(place, question.get('preview', '')) or 'the input'}."


def warnings(question: Mapping[str, Any]) -> list[str]:
    """Return the facts that say what is not so, such as "Not sandboxed: ..."."""
    return [fact for fact in question.get("facts") or () if fact.startswith("Not ")]


def not_grantable(question: Mapping[str, Any], scope: Scope = Scope.EXACT) -> str | None:
    """Return why no grant of this scope may let the call of this gate run, in a sentence; None if one may."""
    if question.get("who"):
        return "Somebody other than whoever asked for it has to approve each of these calls."
    may = question.get("grantable")
    if may not in tuple(Scope):
        return "Calls like this one are always asked about."
    if scope is Scope.FIELDS and may != Scope.FIELDS:
        return "For this tool, you can grant only exactly this call."
    return None


def callers(view: View, path: str) -> tuple[str, ...]:
    """Return the policies that lead to the call at `path`, the turn's root first: agents and programs, no rounds."""
    above = [call for each in ancestors(parent(path)) if (call := view.call(each)) and not opens_gate(call)]
    return tuple(call.payload["policy"] for call in reversed(above) if call.payload["policy"] != "model")
