"""The forms of questions: what was answered before comes back as it is, and every choice can be made."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engine.ledger import JSON, canonical
from agents.engine.runtime.asking import FIELD_ORDER
from agents.engine.schema import schema_of
from conversations.approvals.answers import Question
from conversations.display.question import QuestionForm, answer_fields, asked_again
from tests.budget import examples
from tests.conversations.display.forms import INPUTS, TEXTS, VALUES, Sent, Whole
from tests.conversations.questions import TRIP, Trip

FORM = json.loads(canonical(schema_of(Trip) | {FIELD_ORDER: list(Trip.model_fields)}))
"""The form of a Trip as it is recorded: with its names sorted."""


def html_of(form: QuestionForm) -> str:
    return render_to_string("conversations/card/reply.html", {"reply": form, "prefix": "x"})


class Offered(HTMLParser):
    """The values that a person can choose."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if (tag in ("button", "option") or said.get("type") == "radio") and (value := said.get("value")):
            self.values.append(value)


@settings(max_examples=examples(60))
@given(INPUTS, st.sampled_from(["", "12-"]))
def test_what_was_answered_before_comes_back_as_it_is(draft: dict[str, JSON], prefix: str) -> None:
    question = Question("?", form=schema_of(Whole), draft=draft, problems={"text": ["odd"]})
    shown = asked_again(question, prefix)
    assert shown.refused
    sent = QuestionForm(question, Sent(html_of(shown)).posted, prefix)
    assert not sent.touched
    assert canonical(sent.answer()) == canonical(draft)
    assert sent.errors == {}


@settings(max_examples=examples(200))
@given(VALUES.filter(lambda value: value is not None))
def test_an_answer_that_is_no_object_has_one_field(draft: JSON) -> None:
    question = Question("?", form={"description": "Anything."}, draft=draft)
    sent = QuestionForm(question, Sent(html_of(asked_again(question))).posted)
    assert canonical(sent.answer()) == canonical(draft)


@settings(max_examples=examples(200))
@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=20, unique=True), st.sampled_from(["", "12-"]))
def test_every_choice_can_be_made(choices: list[str], prefix: str) -> None:
    question = Question("?", choices=tuple(choices))
    shown = asked_again(question, prefix)
    assert shown.kind != "buttons" or not prefix, "in a form with others, a button would send them all"
    values = Offered(html_of(shown)).values
    made = [QuestionForm(question, {f"{prefix}answer": value}, prefix) for value in values]
    assert [form.answer() for form in made] == choices
    assert [form.typed[0][1] for form in made] == choices
    assert all(form.touched and not form.errors for form in made)


@pytest.mark.parametrize("posted", [{}, {"answer": ""}, {"answer": "a"}, {"answer": "[1]"}, {"choice": '"a"'}])
def test_what_is_no_choice_is_none(posted: dict[str, str]) -> None:
    form = QuestionForm(Question("?", choices=("a", "b")), posted)
    form.answer()
    assert form.errors == {"": ["Choose one of the answers."]}


def test_fields_stand_in_the_order_of_the_form() -> None:
    """A ledger sorts names; people fill a form in as its author wrote it, and read the answer so."""
    shown = asked_again(Question("?", form=FORM))
    assert [field.name for field in shown.form.fields] == list(Trip.model_fields)
    told = answer_fields(Question("?", form=FORM), TRIP | {"stops": ["Faro", "Porto"], "day": None, "gone": 5})
    assert [(field.name, field.text) for field in told] == [
        ("City", "Lisbon"), ("Nights", "3"), ("Seat", "aisle"), ("With breakfast?", "Yes"), ("Stops", "Faro\nPorto"),
        ("Day", "none"), ("Gone", "5"),
    ]  # fmt: skip


def test_nothing_was_entered() -> None:
    """What is needed is said at its field; what may be left out is not in the answer."""
    form = QuestionForm(Question("?", form=FORM), Sent(html_of(asked_again(Question("?", form=FORM)))).posted)
    assert form.answer() == {}
    assert set(form.errors) == {"city", "nights", "seat", "breakfast"}
    assert {why for all in form.errors.values() for why in all} == {"Enter a value.", "Choose one."}


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        (Question("?"), "In words.", "In words."),
        (Question("?", choices=("a", "b")), "b", "b"),
        (Question("?", form={"type": "array"}), [1, 2], "[\n  1,\n  2\n]"),
        (Question("?", form={"type": "boolean"}), True, "Yes"),
        (Question("?", form=FORM), "[redacted]", "[redacted]"),
        (Question("?"), {"redacted": "[redacted]"}, '{\n  "redacted": "[redacted]"\n}'),
    ],
)
def test_an_answer_without_fields_is_one_text(question: Question, answer: Any, told: str) -> None:
    (field,) = answer_fields(question, answer)
    assert (field.name, field.text) == ("", told)
