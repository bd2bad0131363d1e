"""Cards: gates as people see them, with everything they need to decide, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import DECISIONS, RUNS, Ask, Decision, DecisionRule, Outcome, answers_to, decided_as
from agents.engine.execution.gates import ANOTHER, NO_REASON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import Success, ToolOutput
from agents.engine.paths import HUMAN, parent
from agents.engine.tools.tool import Risk
from conversations.accounts.names import deciders, display_name, names_of
from conversations.approvals.answers import Question
from conversations.approvals.permissions import barred_from_allowing, may_allow, may_decide
from conversations.display.asker import Asker, askers_of
from conversations.display.call import CallField, DisplayedCall, call_of, display_call, result_text, was_cut_off
from conversations.display.diff import Diff, diff
from conversations.display.faithful import first_line
from conversations.display.html_cache import cached_html
from conversations.display.lookalikes import lookalikes
from conversations.display.mixed import mixed_words
from conversations.display.question import QuestionForm, answer_fields, asked_again
from conversations.display.risk import is_red, risk_words
from conversations.display.schema_form import SchemaForm
from conversations.models import GateState, Output

PLACES = {"page": "in the chat", "admin": "in the admin", "api": "over the API"}
"""Where people decide."""

NAMED_MOST = 4
"""People who may decide that are listed by name."""
TITLE_MOST = 80
"""Characters of what a policy asks to approve, if that is the heading of its card."""


@dataclass(frozen=True)
class Opened:
    """The open form of a card: `state` is plain, edit or reject.

    `form` has the fields of an edit, `reply` those of an answer. `text` is what was typed as reason. `problem` says why
    the request was refused. `facts` are the facts about the edited call, and `change` is what it would change; both
    were shown under the digest `seen`.
    """

    state: str = "plain"
    form: SchemaForm | None = None
    reply: QuestionForm | None = None
    text: str = ""
    problem: str = ""
    facts: Sequence[str] = ()
    change: Change | None = None
    seen: str = ""

    def with_facts(self, details: Mapping[str, Any]) -> Opened:
        """Return the same form with the details of a `facts_changed` refusal."""
        change = Change.model_validate(details["change"]) if details.get("change") else None
        return replace(self, facts=details["facts"], change=change, seen=details["digest"])

    @property
    def diff(self) -> Diff | None:
        """The edited call's change, line by line."""
        return diff(self.change) if self.change else None


@dataclass
class Card:
    """A gate. `row` is the stored output, `entry` the engine's view of it, `by` the name of who decided.

    `editor`: the name of who edited the call, where four eyes are needed and somebody else is asked about the edit.
    `asker`: who asks for it; `quotes`: whether what the agent said stands at this card, and not at one before it.

    `may`: whether the reader may decide it; `allow`: whether they may let it run, which with four eyes is up to
    somebody else; `deciders`: the names of people who may. `opened` is set by a view.
    """

    row: Output
    entry: ToolOutput
    call: DisplayedCall
    by: str = ""
    editor: str = ""
    asker: Asker = field(default_factory=Asker)
    quotes: bool = False
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
        """An identifier of its present state, so that a page can see whether it has changed."""
        return f"{self.row.pk}:{self.row.gate}:{self.row.gate_path}:{self.row.digest}"

    @property
    def interrupted(self) -> bool:
        """Whether it asks what became of an interrupted call."""
        return self.row.ask == Ask.INTERRUPTED

    @cached_property
    def question(self) -> Question | None:
        """A policy's own question."""
        return Question.of(self.entry)

    @property
    def own(self) -> bool:
        """Whether a policy asks about something of its own, and not whether a call may run."""
        return self.entry.tool == HUMAN

    @property
    def details(self) -> str:
        """What a policy says about what it asks to be approved."""
        return str(self.entry.input.get("details", "")) if self.own else ""

    @property
    def reply(self) -> QuestionForm | None:
        """The form that answers the question: with what was typed, if that was for this question."""
        typed = self.opened.reply
        if self.question is None or (typed and not self.unused):
            return typed
        return asked_again(self.question)

    @property
    def unused(self) -> QuestionForm | None:
        """What was typed, if somebody else has answered meanwhile, or something else is asked now."""
        typed = self.opened.reply
        used = typed and self.pending and typed.question == self.question and not typed.stale
        return None if used else typed

    @property
    def answer(self) -> list[CallField]:
        """The answer to the question, by label; empty while there is none."""
        said = self.entry.result.output if isinstance(self.entry.result, Success) else None
        if self.question is None or not isinstance(said, dict) or said.get("decision") != Decision.ANSWER:
            return []
        return answer_fields(self.question, said.get("answer"))

    @property
    def editable(self) -> bool:
        """Whether it can be approved with another input."""
        return self.pending and self.row.ask == Ask.APPROVE and self.entry.tool != HUMAN

    @property
    def for_another(self) -> bool:
        """Whether four eyes are needed: an edit then asks somebody else."""
        return self.row.who == ANOTHER

    @property
    def proposed(self) -> DisplayedCall | None:
        """The call as the agent asked for it, if a person edited it."""
        if self.entry.proposed is None:
            return None
        gate = self.entry.approval
        return display_call(self.entry.tool, self.entry.proposed, gate.proposed if gate else None, gate)

    @property
    def reason(self) -> str:
        """The reason for asking, or the question itself; "" if that only repeats the call."""
        if self.own:
            return "" if self.row.reason == self.call.title else self.row.reason
        asked = self.proposed or self.call
        plain = self.row.ask == Ask.APPROVE and (self.row.reason == NO_REASON or asked.repeats(self.row.reason))
        return "" if plain else self.row.reason

    @property
    def approve_label(self) -> str:
        """The label of the approve button, which names its effect."""
        return f"Approve and {self.call.effect}" if self.call.effect else "Approve"

    @property
    def choices(self) -> dict[Decision, DecisionRule]:
        """The answers to an interrupted call that the reader may give."""
        given = answers_to(Ask.INTERRUPTED) if self.interrupted else ()
        return {decision: DECISIONS[decision] for decision in given if self.allow or decision not in RUNS}

    @property
    def decidable(self) -> bool:
        """Whether it is pending and is answered with one of a few buttons."""
        return self.pending and self.row.ask in (Ask.APPROVE, Ask.INTERRUPTED)

    @property
    def title(self) -> str:
        """The title of the call, or the question about it."""
        if self.question and not self.pending:
            return first_line(self.question.text) or self.call.title
        return f"{self.call.title}: did this run?" if self.interrupted and self.pending else self.call.title

    @property
    def first_line(self) -> str:
        """The first line of the input, for a list; of a policy's question, of its answer."""
        if self.own:
            said = [f"{field.name}: {field.text}" if field.name else field.text for field in self.answer]
            return first_line(", ".join(said) or self.details)
        return self.call.first_line

    @property
    def misleading(self) -> list[str]:
        """A sentence for each word that is shown to whoever decides, and may not be what it looks like."""
        if not self.own:
            return self.call.misleading
        texts = (self.row.reason, self.details, *(self.question.choices if self.question else ()))
        return [*mixed_words(texts), *lookalikes(texts)]

    @property
    def icon(self) -> str:
        """The name of its icon."""
        if self.interrupted or self.question:
            return "cut" if self.interrupted else "chat"
        return {"run": "term", "write": "edit", "delete": "cut"}.get(self.call.effect, "hand")

    @property
    def risk(self) -> str:
        """The call's risk, in a word or two; "" if it only reads."""
        return "" if self.row.risk in ("", Risk.READ) else risk_words(self.row.risk, self.facts)

    @property
    def risk_class(self) -> str:
        """The CSS class of the badge."""
        return "risk-high" if is_red(self.risk) else "risk-write"

    @property
    def facts(self) -> list[str]:
        """What else one should know about the call."""
        return self.entry.approval.facts if self.entry.approval else []

    @property
    def verdict(self) -> str:
        """What was decided and by whom, in one line."""
        rule = decided_as(self.row.ask, self.row.gate)
        if rule is None:
            return ""
        edited = self.entry.proposed is not None and self.row.gate == GateState.APPROVED and not self.interrupted
        verdict = "Edited and approved" if edited and not self.editor else rule.verdict
        decided = f"{verdict} by {self.by}" if rule.people else verdict
        return f"{decided}, as edited by {self.editor}" if edited and self.editor else decided

    @property
    def where(self) -> str:
        """Where a person decided it, in words; "" if no person did."""
        return PLACES.get(self.row.via, "") if Actor.parse(self.row.decided_by).kind == Kind.USER else ""

    @property
    def refused(self) -> bool:
        """Whether the call may not run."""
        rule = decided_as(self.row.ask, self.row.gate)
        return rule is not None and rule.outcome is Outcome.REFUSE

    @property
    def cut_off(self) -> bool:
        """Whether the call was stopped while it ran."""
        return was_cut_off(self.entry)

    @property
    def result(self) -> str:
        """The result of the call as text; "" if it was kept from running."""
        return "" if self.refused or self.own else result_text(self.entry)

    @property
    def inside(self) -> SafeString:
        """What was decided about and what came of it, as HTML from the cache."""
        return cached_html(
            lambda: render_to_string("conversations/card/inside.html", {"card": self}),
            "card", self.row.ask, self.row.gate, self.entry.model_dump(),
        )  # fmt: skip

    @property
    def started(self) -> datetime | None:
        """When the call started; None if it did not."""
        return datetime.fromisoformat(self.entry.started_at) if self.entry.started_at else None


def cards(rows: Sequence[Output], reader: User | AnonymousUser, *, decided: bool = False) -> list[Card]:
    """Return the cards of these outputs, in order. Names and askers are looked up once for all of them.

    Decided ones have their askers only if `decided` says so: most pages do not tell who asked. What the agent said of
    several calls of an answer stands at the first of them, and at the first that was edited: there it is about the
    original input.
    """
    names = names_of({actor for row in rows for actor in (row.decided_by, row.edited_by) if actor}, reader)
    found = [card(row, names) for row in rows]
    askers = askers_of([each.row for each in found if decided or each.pending])
    quoted = set()
    for each in found:
        each.asker = askers.get(each.row.pk, each.asker)
        said = each.row.prompt_id, parent(each.row.path), each.entry.proposed is not None
        each.quotes = bool(each.asker.words) and not each.interrupted and said not in quoted
        quoted |= {said} if each.quotes else set()
    others: dict[tuple[int, frozenset[int]], list[str]] = {}
    for each in (each for each in found if each.pending):
        each.may, each.allow = may_decide(reader, each.row), may_allow(reader, each.row)
        if not each.allow:
            owner, but = each.row.conversation.owner, frozenset(barred_from_allowing(each.row))
            if (owner.pk, but) not in others:
                others[owner.pk, but] = [display_name(user) for user in deciders(owner, but)[:NAMED_MOST]]
            each.deciders = others[owner.pk, but]
    return found


def warnings_first(facts: Iterable[str]) -> list[tuple[str, bool]]:
    """Return each fact with whether it is a warning, e.g. "Not sandboxed: ..."; warnings come first."""
    return sorted(((fact, fact.startswith("Not ")) for fact in facts), key=lambda each: not each[1])


def card(row: Output, names: Mapping[str, str] = {}) -> Card:
    """Return the card of this output. `names`: of people, by actor. Raises TypeError for an output that is no call."""
    entry = row.entry()
    if not isinstance(entry, ToolOutput):
        raise TypeError(f"output {row.pk} is a {row.type}, which has no gate")
    return Card(row, entry, _call(entry), names.get(row.decided_by, ""), names.get(row.edited_by, ""))


def _call(entry: ToolOutput) -> DisplayedCall:
    """Return what is asked about: the call, or a policy's own question to a person."""
    if entry.tool != HUMAN or entry.approval is None:
        return call_of(entry)
    if entry.approval.ask == Ask.QUESTION:
        return DisplayedCall("A question", None, [])
    asked = entry.approval.reason.strip()
    short = asked and len(asked) <= TITLE_MOST and "\n" not in asked
    return DisplayedCall(asked if short else "Something to approve", None, [])
