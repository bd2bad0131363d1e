"""Cards: gates as people see them, with everything they need to decide, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import DECISIONS, RUNS, Ask, Decision, DecisionRule, Outcome, answers_to, decided_as
from agents.engine.execution.gates import ANOTHER, NO_REASON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import Success, ToolOutput
from agents.engine.paths import HUMAN
from agents.engine.tools.tool import Risk
from conversations.approvals.answers import Question
from conversations.display.asker import Asker
from conversations.display.call import CallField, DisplayedCall, call_of, display_call, result_text, was_cut_off
from conversations.display.card_place import CardPlace, in_chat
from conversations.display.changes import FieldChange, changes_of_call, typed_changes
from conversations.display.diff import Diff, diff
from conversations.display.faithful import first_line
from conversations.display.helps import LINE_MOST, Helps, TurnStart
from conversations.display.html_cache import cached_html
from conversations.display.lookalikes import lookalikes
from conversations.display.mixed import mixed_words
from conversations.display.question import QuestionForm, answer_fields, asked_again
from conversations.display.remember_form import RememberForm
from conversations.display.risk import is_red, risk_words
from conversations.display.schema_form import SchemaForm
from conversations.models import GateState, Output

PLACES = {"page": "in the chat", "inbox": "in the inbox", "admin": "in the admin", "api": "over the API"}
"""Where people decide."""

TITLE_MOST = 80
"""Characters of what a policy asks to approve, if that is the heading of its card."""


@dataclass(frozen=True)
class Opened:
    """The open form of a card: `state` is plain, edit, reject or remember.

    `form` has the fields of an edit, `reply` those of an answer, `remember` those of a grant. `text` is what was typed
    as reason. `problem` says why the request was refused. `facts` are the facts about the edited call, and `change` is
    what it would change; both were shown under the digest `seen`. `password` says why the reader's
    password is asked for, or was not accepted.
    """

    state: str = "plain"
    form: SchemaForm | None = None
    reply: QuestionForm | None = None
    remember: RememberForm | None = None
    text: str = ""
    problem: str = ""
    facts: Sequence[str] = ()
    change: Change | None = None
    seen: str = ""
    password: str = ""

    def with_facts(self, details: Mapping[str, Any]) -> Opened:
        """Return the same form with the details of a `facts_changed` refusal."""
        change = Change.model_validate(details["change"]) if details.get("change") else None
        return replace(self, facts=details["facts"], change=change, seen=details["digest"])

    @property
    def says_problem(self) -> bool:
        """Whether its form has a place of its own for the problem, beside its buttons."""
        return bool(self.form or self.remember)

    @property
    def diff(self) -> Diff | None:
        """The edited call's change, line by line."""
        return diff(self.change) if self.change else None

    @property
    def changes(self) -> list[FieldChange]:
        """What was typed into the form of an edit, field by field."""
        return typed_changes(self.form) if self.form else []


@dataclass
class Card:
    """A gate. `row` is the stored output, `entry` the engine's view of it, `by` the name of who decided.

    `editor`: the name of who edited the call, where four eyes are needed and somebody else is asked about the edit.
    `asker`: who asks for it; `quotes`: whether what the agent said stands at this card, and not at one before it.
    `start`: what its turn came of; None if that stands at a card before it. `helps`: what else helps to decide.

    `may`: whether the reader may decide it; `allow`: whether they may let it run, which with four eyes is up to
    somebody else; `own_call`: whether it is a call of theirs; `deciders`: the names of people who may. `why_asked`: why
    grants of theirs for this tool do not cover it. `password`: "asked" if they need theirs for that, "none" if they
    have none. `opened` and `place` are set by a view; without a place it stands in the chat.
    """

    row: Output
    entry: ToolOutput
    call: DisplayedCall
    by: str = ""
    editor: str = ""
    asker: Asker = field(default_factory=Asker)
    quotes: bool = False
    start: TurnStart | None = None
    helps: Helps | None = None
    may: bool = False
    allow: bool = False
    own_call: bool = False
    deciders: Sequence[str] = ()
    why_asked: Sequence[str] = ()
    password: str = ""
    opened: Opened = Opened()
    place: CardPlace | None = None

    @property
    def at(self) -> CardPlace:
        """The addresses of its forms."""
        return self.place or in_chat(self.row)

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
        used = typed and self.pending and self.allow and typed.question == self.question and not typed.stale
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
    def rememberable(self) -> bool:
        """Whether the reader can grant calls like this one with its approval."""
        gate = self.entry.approval
        return self.editable and self.allow and self.own_call and bool(gate and gate.grantable)

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
    def led_long(self) -> bool:
        """Whether what led to it takes more than its three lines."""
        texts = (self.start.message if self.start else "", self.asker.words if self.quotes else "")
        return any("\n" in text or len(text) > LINE_MOST for text in texts)

    @property
    def edits(self) -> list[FieldChange]:
        """What a person changed of what the agent asked for, field by field."""
        before = self.entry.proposed
        return changes_of_call(self.entry.tool, before, self.entry.input) if before is not None else []

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
