"""Questions of policies, for display: the form that answers one, what was typed into it, and the answer in words."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.runtime.asking import WHOLE
from conversations.approvals.answers import ANSWER_MOST, Question
from conversations.display.call import CallField
from conversations.display.faithful import unseen
from conversations.display.schema_form import FormField, SchemaForm
from conversations.display.schema_parsing import label_of
from conversations.display.schema_times import TIMES
from conversations.display.schema_values import LINE_MOST, TYPED_KINDS
from conversations.display.value import ANY, as_text, kinds_in

BUTTONS_MOST, BUTTON_MOST = 4, 30
"""Choices that are buttons, and the length of the longest, in characters. One click then answers."""
RADIOS_MOST = 12
"""Choices that are all listed. More are in a select, if they can be told apart in one line."""
_FIELD = re.compile(rf"(\d+\.)*({'|'.join(TYPED_KINDS)})-\d+|answer")
ALONE = "answer"
"""The name of the only field of a form whose answer is no object."""


@dataclass
class QuestionForm:
    """The form that answers a question. `posted` is what was submitted, `errors` what is wrong with it, by field.

    `prefix` begins the names of its fields, where several forms are sent as one. `stale`: it was submitted for another
    question, which was asked before this one.
    """

    question: Question
    posted: Mapping[str, str] | None = None
    prefix: str = ""
    errors: dict[str, list[str]] = field(default_factory=dict)
    stale: bool = False

    @property
    def kind(self) -> str:
        """How it is answered: words, buttons, radios, select or form. Never by buttons within another form."""
        choices = self.question.choices
        if self.question.form is not None or not choices:
            return "words" if self.question.form is None else "form"
        if len(choices) <= BUTTONS_MOST and not self.prefix and _tellable(choices, BUTTON_MOST):
            return "buttons"
        return "select" if len(choices) > RADIOS_MOST and _tellable(choices, LINE_MOST) else "radios"

    @property
    def name(self) -> str:
        """The name of its only field, unless it is a form."""
        return f"{self.prefix}answer"

    @property
    def text(self) -> str:
        """What stands in its only field: what was typed, or the answer before; of a choice, its JSON."""
        before = self.question.draft
        asked = self.posted is not None and self.name in self.posted
        if asked and self.posted:
            return self.posted[self.name].replace("\r\n", "\n")
        if self.question.choices:
            return json.dumps(before) if before in self.question.choices else ""
        return before if isinstance(before, str) else ""

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The values of the choices as they are posted, with their words."""
        return [(json.dumps(each), each) for each in self.question.choices]

    @cached_property
    def form(self) -> SchemaForm:
        """The form of an answer that is more than a text, with what is wrong with it."""
        schema, draft = self.question.form or {}, self.question.draft
        if _is_object(schema):
            given = draft if isinstance(draft, dict) else {}
        else:
            given = {} if draft is None else {ALONE: draft}
            schema = {"properties": {ALONE: schema}, "required": [ALONE], "$defs": schema.get("$defs", {})}
        return SchemaForm(schema, given, self.posted, errors=self.errors, prefix=self.prefix, focus=bool(self.posted))

    @property
    def refused(self) -> bool:
        """Whether it shows an answer that the policy refused."""
        return bool(self.question.problems) and self.posted is None

    @property
    def others(self) -> list[str]:
        """What is wrong with the answer as a whole."""
        return self.form.others if self.kind == "form" else [why for all in self.errors.values() for why in all]

    def answer(self) -> JSON:
        """Return the answer that was typed. Check `errors` before use."""
        if self.kind == "form":
            said = self.form.payload()
            return said if _is_object(self.question.form or {}) else said.get(ALONE)
        if not self.question.choices:
            return self.text
        chosen = next((words for value, words in self.choices if value == self.text), None)
        if chosen is None:
            self.errors[WHOLE] = ["Choose one of the answers."]
        return chosen

    @property
    def touched(self) -> bool:
        """Whether something was typed: it differs from what stood there."""
        if self.kind == "form":
            return self.form.touched
        return self.text != QuestionForm(self.question, prefix=self.prefix).text

    @property
    def typed(self) -> list[tuple[str, str]]:
        """What was typed, by label: for people whose answer came too late."""
        if self.stale:
            sent = [(name.removeprefix(self.prefix), text) for name, text in (self.posted or {}).items()
                    if name.startswith(self.prefix)]  # fmt: skip
            return [("Your answer", text) for name, text in sent if text and _FIELD.fullmatch(name)]
        if self.kind == "form":
            return [(each.label, each.words) for each in self.form.fields]
        return [("Your answer", dict(self.choices).get(self.text, self.text))]

    @property
    def longest(self) -> int:
        """Maximum length of an answer in words."""
        return ANSWER_MOST


def asked_again(question: Question, prefix: str = "") -> QuestionForm:
    """Return the form of a question that nobody has typed into; with what the policy refused, if it asks again."""
    return QuestionForm(question, prefix=prefix, errors={at: list(why) for at, why in question.problems.items()})


def answer_fields(question: Question, answer: JSON) -> list[CallField]:
    """Return an answer for display: its fields by their labels, or a single one without a name."""
    schema = question.form or {}
    if not isinstance(answer, dict) or not _is_object(schema):
        return [CallField("", answer if isinstance(answer, str) else _words(answer, ANY), block=True)]
    kinds = defaultdict(lambda: ANY, kinds_in(schema))
    fields = [each for each in SchemaForm(schema, answer).fields if each.name in answer]
    told = {
        each.name: each.words if _reads_better(each, answer[each.name]) else _words(answer[each.name], kinds[each.name])
        for each in fields
    }
    return [CallField(each.label, told[each.name], "\n" in told[each.name]) for each in fields]


def _reads_better(field: FormField, value: JSON) -> bool:
    """Whether the field says it better than its JSON."""
    return value is not None and (field.part is not None or field.kind in (*TIMES.values(), "choices"))


def _words(value: JSON, kinds: frozenset[str]) -> str:
    return label_of(value) if value is None or isinstance(value, bool) else as_text(value, kinds)


def _tellable(choices: Iterable[str], most: int) -> bool:
    """Whether each choice can be read in one line of at most this length, with no mark in place of a character."""
    return not any(len(each) > most or "\n" in each or unseen(each) or each != each.strip() for each in choices)


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Whether an answer with this schema is an object with fields."""
    return isinstance(schema.get("properties"), dict)
