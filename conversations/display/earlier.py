"""Earlier calls of the same tool that people decided: what the last approved one was, and how the last ten went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, When

from agents.engine.actors import Kind
from agents.engine.decisions import Ask
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.paths import HUMAN
from conversations.accounts.names import names_of
from conversations.approvals.permissions import DECIDE_OTHERS, shown_to
from conversations.display.changes import FieldChange, changes_of_call
from conversations.models import Conversation, GateState, Output, Redaction

TALLIED_MOST = 10
"""How many earlier calls are counted."""
CONVERSATIONS_MOST = 300
"""Of whoever decides only their own calls, the latest conversations in which earlier ones are looked for. A card then
takes as long for somebody who has ten thousand."""
NAMED_MOST = 2
"""Fields that differ and are told in one line, with what they were."""
UNCHANGED = "approved unchanged"
WORDS = (UNCHANGED, "edited and approved", "rejected", "expired")
"""How a call was decided, in the order in which they are told."""
_EDITED = '"proposed":{'
"""A part of the data of every output that was edited, and of hardly any other: only those that have it are read."""


class _Decided(NamedTuple):
    """An earlier call: its row without what was asked, which may be large."""

    decided_at: datetime
    pk: int
    tool: str
    conversation: int
    gate: str
    decided_by: str
    redacted: bool
    perhaps_edited: bool

    @property
    def can_be_compared(self) -> bool:
        """Whether it was approved, and its input is still on record."""
        return self.gate == GateState.APPROVED and not self.redacted


@dataclass(frozen=True)
class LastApproved:
    """The last approved call of a tool, compared with one that waits. `by`: who approved it; `here`: in the same
    conversation. `changes`: the fields that differ, with what they were.
    """

    by: str
    at: datetime
    here: bool
    changes: Sequence[FieldChange] = ()

    @property
    def brief(self) -> bool:
        """Whether one line says all that differs."""
        return len(self.changes) <= NAMED_MOST and all(each.short for each in self.changes)


@dataclass(frozen=True)
class EarlierCalls:
    """What became of earlier calls like one that waits. `tally`: how often they were decided in which way, in words."""

    last: LastApproved | None = None
    tally: Mapping[str, int] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """How many calls are counted; 0 if the last approved one is the only one, which is told anyway."""
        count = sum(self.tally.values())
        return 0 if count == 1 and self.last and self.tally.get(UNCHANGED) else count


def earlier_calls(asked: Sequence[tuple[Output, ToolOutput]], reader: User | AnonymousUser) -> dict[int, EarlierCalls]:
    """Return what became of earlier calls like these, by output, among those that the reader may see as approvals.

    Only calls that a person decided count, and those that expired. All are looked up in three queries.
    """
    asked = [(row, entry) for row, entry in asked if _is_compared(row, entry)]
    if not asked:
        return {}
    found = _found([row for row, _ in asked], reader)
    last = {row.pk: _last(row, found) for row, _ in asked}
    read = {each.pk for each in last.values() if each} | {each.pk for each in found if each.perhaps_edited}
    stored = {row.pk: row.entry() for row in Output.objects.filter(pk__in=read)}
    entries = {pk: entry for pk, entry in stored.items() if isinstance(entry, ToolOutput)}
    names = names_of({each.decided_by for each in last.values() if each}, reader)
    return {
        row.pk: EarlierCalls(_compared(row, entry, last[row.pk], entries, names), _tally(row.tool, found, entries))
        for row, entry in asked
    }


def _is_compared(row: Output, entry: ToolOutput) -> bool:
    return row.ask == Ask.APPROVE and entry.tool != HUMAN and entry.raw is None


def _found(rows: Sequence[Output], reader: User | AnonymousUser) -> list[_Decided]:
    """Return the earlier calls to look at, the newest first: of each tool the last ten, and the last that was
    approved, at all and in the conversation of each of these.
    """
    tools = sorted({row.tool for row in rows})
    parts = [_of(tool, reader)[:TALLIED_MOST] for tool in tools]
    parts += [_of(tool, reader).filter(gate=GateState.APPROVED)[:1] for tool in tools]
    pairs = sorted({(row.tool, row.conversation_id) for row in rows})
    parts += [_of(tool, reader, here).filter(gate=GateState.APPROVED)[:1] for tool, here in pairs]
    redacted = Exists(Redaction.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("position")))
    edited = Case(When(data__contains=_EDITED, then=True), default=False)
    columns = ("decided_at", "pk", "tool", "conversation", "gate", "decided_by", redacted, edited)
    told = [Output.objects.filter(pk__in=part.values("pk")).order_by().values_list(*columns) for part in parts]
    together = told[0].union(*told[1:], all=True).order_by()  # Django 6.1 would order them as the table's rows
    return sorted({_Decided(*each) for each in together}, reverse=True)


def _of(tool: str, reader: User | AnonymousUser, conversation: int | None = None) -> QuerySet[Output]:
    """Return the decided calls of a tool that the reader may see, the newest first; those of one conversation."""
    by_person = Q(decided_by__startswith=f"{Kind.USER}:", gate__in=(GateState.APPROVED, GateState.REJECTED))
    seen = shown_to(reader, Output.objects.filter(tool=tool, ask=Ask.APPROVE, decided_at__isnull=False))
    if conversation is not None:
        seen = seen.filter(conversation=conversation)
    elif not reader.has_perm(DECIDE_OTHERS):
        latest = Conversation.objects.filter(owner=reader.pk).order_by("-updated_at")
        seen = seen.filter(conversation__in=latest.values("pk")[:CONVERSATIONS_MOST])
    return seen.filter(by_person | Q(gate=GateState.EXPIRED)).order_by("-decided_at", "-pk")


def _last(row: Output, found: Iterable[_Decided]) -> _Decided | None:
    """Return the last approved call like this one: in its conversation if there is one, otherwise anywhere."""
    alike = [each for each in found if each.tool == row.tool and each.can_be_compared]
    here = [each for each in alike if each.conversation == row.conversation_id]
    return next(iter(here or alike), None)


def _compared(
    row: Output, entry: ToolOutput, last: _Decided | None, entries: Mapping[int, ToolOutput], names: Mapping[str, str]
) -> LastApproved | None:
    if last is None or (before := entries.get(last.pk)) is None:
        return None
    changes = changes_of_call(entry.tool, before.input, entry.input)
    return LastApproved(names[last.decided_by], last.decided_at, last.conversation == row.conversation_id, changes)


def _tally(tool: str, found: Iterable[_Decided], entries: Mapping[int, ToolOutput]) -> dict[str, int]:
    """Return how the last ten of this tool were decided, in words, with how often."""
    last = [each for each in found if each.tool == tool][:TALLIED_MOST]
    counted = Counter(_words(each, entries) for each in last)
    return {words: counted[words] for words in WORDS if counted[words]}


def _words(decided: _Decided, entries: Mapping[int, ToolOutput]) -> str:
    if decided.gate != GateState.APPROVED:
        return str(decided.gate)
    entry = entries.get(decided.pk)
    return WORDS[1] if entry and entry.proposed is not None else UNCHANGED
