"""A gate as people see it: what is asked, everything they need to decide it, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import DECISIONS, RUNS, Ask, Outcome, answers_to, decided_as
from agents.engine.execution.gates import NO_REASON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.paths import HUMAN
from conversations.accounts.names import deciders, display_name, names_of
from conversations.approvals.permissions import barred_from_allowing, may_allow, may_decide
from conversations.display.call import DisplayedCall, call_of, result_text, shown_call
from conversations.display.diff import Diff, diff
from conversations.models import GateState, Output

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

RISKS = {
    "write": "Writes",
    "exfiltration": "Leaves the site",
    "destructive": "Destructive",
    "high": "High risk",
}
"""What a risk is called; what only reads carries no badge."""

PLACES = {"page": "in the chat", "admin": "in the admin", "api": "over the API"}
"""From where people decide."""

NAMED_MOST = 4
"""People who are named as those who may decide."""


class EditForm(Protocol):
    """The fields of an edit, see conversations.display.schema_form."""

    @property
    def fields(self) -> Sequence[object]:
        """The fields, in order."""
        ...

    @property
    def others(self) -> Sequence[str]:
        """What is wrong at none of them."""
        ...


@dataclass(frozen=True)
class Choice:
    """One answer that can be given, and what follows from it."""

    decision: str
    label: str
    consequence: str


@dataclass(frozen=True)
class Opened:
    """What stands open on a card: `state` is plain, edit or reject.

    `form` are the fields of an edit. `text` is what was typed as reason or answer. `problem` says why what was asked
    for was not done; `facts` what would hold of the edited call, and `change` what it would change, both seen under the
    digest `seen`.
    """

    state: str = "plain"
    form: EditForm | None = None
    text: str = ""
    problem: str = ""
    facts: Sequence[str] = ()
    change: Change | None = None
    seen: str = ""

    def telling(self, details: Mapping[str, Any]) -> Opened:
        """The same with what `facts_changed` tells of the edited call."""
        change = Change.model_validate(details["change"]) if details.get("change") else None
        return replace(self, facts=details["facts"], change=change, seen=details["digest"])

    @property
    def diff(self) -> Diff | None:
        """What the edited call would change, line by line."""
        return diff(self.change) if self.change else None

    @property
    def warnings(self) -> list[str]:
        """Those of the facts that are no comfort."""
        return [fact for fact in self.facts if warns(fact)]

    @property
    def rest(self) -> list[str]:
        """The other facts."""
        return [fact for fact in self.facts if not warns(fact)]


@dataclass
class Card:
    """A gate. `row` is the stored output, `entry` what the engine knows of it, `by` who decided, in words.

    `may`: whether the reader may decide it, and `allow` whether so that it runs, which with four eyes is another's to
    say; who may are the `deciders`, by name. `opened` is set by a view.
    """

    row: Output
    entry: ToolOutput
    call: DisplayedCall
    by: str = ""
    may: bool = False
    allow: bool = False
    deciders: Sequence[str] = ()
    opened: Opened = Opened()

    @property
    def pending(self) -> bool:
        """Whether it waits for a person."""
        return self.row.gate == GateState.PENDING

    @property
    def stands(self) -> str:
        """What names it as it stands now, for a page to see whether that changed."""
        return f"{self.row.pk}:{self.row.gate}:{self.row.digest}"

    @property
    def interrupted(self) -> bool:
        """Whether the question is what became of a call that began."""
        return self.row.ask == Ask.INTERRUPTED

    @property
    def question(self) -> bool:
        """Whether it is a question of a policy's own, which is answered in words."""
        return self.row.ask == Ask.QUESTION

    @property
    def editable(self) -> bool:
        """Whether it can be approved with another input."""
        return self.pending and self.row.ask == Ask.APPROVE and self.entry.tool != HUMAN

    @property
    def proposed(self) -> DisplayedCall | None:
        """The call as the agent asked for it, where a person changed it."""
        if self.entry.proposed is None:
            return None
        gate = self.entry.approval
        return shown_call(self.entry.tool, self.entry.proposed, gate.proposed if gate else None)

    @property
    def reason(self) -> str:
        """Why it is asked, or what is; "" where that says no more than the call itself, as it was asked about."""
        asked = self.proposed or self.call
        plain = self.row.ask == Ask.APPROVE and (self.row.reason == NO_REASON or asked.repeats(self.row.reason))
        return "" if plain else self.row.reason

    @property
    def approve_label(self) -> str:
        """The button, which names its effect."""
        return f"Approve and {self.call.effect}" if self.call.effect else "Approve"

    @property
    def choices(self) -> Sequence[Choice]:
        """The answers to an interrupted call that the reader may give."""
        given = answers_to(Ask.INTERRUPTED) if self.interrupted else ()
        return [
            Choice(decision, DECISIONS[decision].label, DECISIONS[decision].follows)
            for decision in given
            if self.allow or decision not in RUNS
        ]

    @property
    def decidable(self) -> bool:
        """Whether it waits for one of two or three words, each of which has a button."""
        return self.pending and self.row.ask in (Ask.APPROVE, Ask.INTERRUPTED)

    @property
    def title(self) -> str:
        """What is asked about."""
        return f"{self.call.title}: did this run?" if self.interrupted and self.pending else self.call.title

    @property
    def icon(self) -> str:
        """The name of its icon."""
        if self.interrupted or self.question:
            return "cut" if self.interrupted else "chat"
        return {"run": "term", "write": "edit"}.get(self.call.effect, "hand")

    @property
    def risk(self) -> str:
        """What the call can do to the world, in a word or two; "" where it only reads."""
        return "" if self.row.risk in ("", "read") else called_risk(self.row.risk)

    @property
    def risk_class(self) -> str:
        """How the badge looks."""
        return "risk-write" if self.row.risk == "write" else "risk-high"

    @property
    def warnings(self) -> list[str]:
        """What holds about the call and is no comfort, e.g. "Not sandboxed: ..."."""
        return [fact for fact in self._facts if warns(fact)]

    @property
    def facts(self) -> list[str]:
        """What else holds about the call."""
        return [fact for fact in self._facts if not warns(fact)]

    @property
    def verdict(self) -> str:
        """What was decided and by whom, for the one line that is left of it."""
        rule = decided_as(self.row.ask, self.row.gate)
        if rule is None:
            return ""
        edited = self.entry.proposed is not None and self.row.gate == GateState.APPROVED and not self.interrupted
        said = "Edited and approved" if edited else rule.verdict
        return f"{said} by {self.by}" if rule.people else said

    @property
    def where(self) -> str:
        """From where a person decided it, in words; "" where none did."""
        return PLACES.get(self.row.via, "") if Actor.parse(self.row.decided_by).kind == Kind.USER else ""

    @property
    def refused(self) -> bool:
        """Whether the call may not run."""
        rule = decided_as(self.row.ask, self.row.gate)
        return rule is not None and rule.outcome is Outcome.REFUSE

    @property
    def result(self) -> str:
        """What the call came to, as text; "" where a person kept it from running."""
        return "" if self.refused else result_text(self.entry)

    @property
    def started(self) -> datetime | None:
        """When the call began, None where it did not."""
        return datetime.fromisoformat(self.entry.started_at) if self.entry.started_at else None

    @property
    def _facts(self) -> list[str]:
        return self.entry.approval.facts if self.entry.approval else []


def cards(rows: Sequence[Output], reader: User | AnonymousUser) -> list[Card]:
    """The gates of these outputs, in their order; the names of those who decided are looked up once for all."""
    names = names_of({row.decided_by for row in rows if row.decided_by}, reader)
    found = [card(row, names.get(row.decided_by, "")) for row in rows]
    others: dict[tuple[int, frozenset[int]], list[str]] = {}
    for each in (each for each in found if each.pending):
        each.may, each.allow = may_decide(reader, each.row), may_allow(reader, each.row)
        if not each.allow:
            owner, but = each.row.conversation.owner, frozenset(barred_from_allowing(each.row))
            if (owner.pk, but) not in others:
                others[owner.pk, but] = [display_name(user) for user in deciders(owner, but)[:NAMED_MOST]]
            each.deciders = others[owner.pk, but]
    return found


def called_risk(risk: str) -> str:
    """What a risk is called where several are told apart."""
    return RISKS.get(risk) or ("Reads" if risk in ("", "read") else risk)


def warns(fact: str) -> bool:
    """Whether a fact is no comfort, e.g. "Not sandboxed: ..."."""
    return fact.startswith("Not ")


def card(row: Output, by: str = "") -> Card:
    """The gate of this output. Raises TypeError for an output that is no call."""
    entry = row.entry()
    if not isinstance(entry, ToolOutput):
        raise TypeError(f"output {row.pk} is a {row.type}, which nobody decides")
    return Card(row, entry, _call(entry), by)


def _call(entry: ToolOutput) -> DisplayedCall:
    """What is asked about: the call, or what a policy puts to a person in a question of its own."""
    if entry.tool != HUMAN:
        return call_of(entry)
    asked = entry.input.get("input")
    return DisplayedCall("A question", None, shown_call("", asked if isinstance(asked, dict) else {}).fields)
