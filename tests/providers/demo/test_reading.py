"""The demo model that summarises files and answers from documents, out of what it is given alone, and says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.apart import set_apart
from agents.engine.interfaces.provider import FINAL_ANSWER
from agents.providers.demo.rules import answer
from agents.providers.demo.text import key_words, sentences
from workflows.shipped.given import RULE
from workflows.shipped.research.passages import Passage
from workflows.shipped.research.workflows import ANSWER, SEARCH, SEARCHES_MOST, Searches
from workflows.shipped.research.workflows import Answer as FromDocuments
from workflows.shipped.summary.workflows import SUMMARISE, Summary


def said(text: str, form: Any) -> Any:
    """The form that the demo model fills in when it is asked this."""
    tools = [{"type": "function", "name": FINAL_ANSWER, "parameters": form.model_json_schema()}]
    reply = answer({"model": "demo", "input": text, "tools": tools})
    (call,) = reply.calls
    return form.model_validate(call.arguments)


def summary(text: str, focus: str = "everything") -> Summary:
    asked = SUMMARISE.format(path=json.dumps("a.md"), focus=focus, rule=RULE, text=set_apart(text))
    found: Summary = said(asked, Summary)
    return found


def searches(question: str, searched: dict[str, int]) -> list[str]:
    told = json.dumps(searched) if searched else "nothing"
    asked = SEARCH.format(question=question, files="[]", searched=told, most=5, rule=RULE, passages="nothing")
    found: Searches = said(asked, Searches)
    return found.searches


def answered(question: str, passages: list[Passage]) -> FromDocuments:
    text = set_apart("\n\n".join(each.text for each in passages))
    found: FromDocuments = said(ANSWER.format(question=question, rule=RULE, passages=text), FromDocuments)
    return found


def test_a_summary_is_the_first_sentences_and_says_so() -> None:
    found = summary("# A heading\n\nOne is here.\nTwo is long,\nand ends.\n\n- Three.\n- Four costs 5 EUR.\n- Six.\n")
    assert found.summary.startswith("One is here. Two is long, and ends. Three. (By the demo model")
    assert found.points == ["Four costs 5 EUR."]


def test_what_matters_is_looked_for() -> None:
    text = "One. Two. Three. Four. The dogs bark. Five."
    assert summary(text).points == []
    assert summary(text, "dog").points == ["The dogs bark."]


def test_a_text_without_sentences_is_said_to_have_none() -> None:
    assert summary("--- ***\n").summary.startswith("It has no sentences that I could repeat.")


@given(st.text(max_size=300))
def test_any_text_gets_a_summary_of_its_own_words(text: str) -> None:
    found = summary(text)
    assert all(point.removesuffix("…") in " ".join(" ".join(sentences(text)).split("\0")) for point in found.points)
    assert "demo model" in found.summary


def test_it_searches_for_the_words_of_the_question_and_then_for_their_beginnings() -> None:
    question = "When do the leases of the shops end?"
    assert searches(question, {}) == ["leases", "shops", "end"]
    assert searches(question, {"leases": 0, "shops": 0, "end": 3}) == ["leas", "shop"]
    assert searches(question, {"leases": 0, "shops": 2, "end": 3, "leas": 1}) == []


def test_it_answers_with_the_lines_that_share_most_words() -> None:
    passages = [
        Passage("a.md", 7, ("# The lease ends", "Tea is hot.", "The lease of the shop ends in March.")),
        Passage("b/c.md", 1, ("The shop is open.",)),
    ]
    found = answered("When does the lease of the shop end?", passages)
    assert [(claim.text, claim.sources[0].path, claim.sources[0].line) for claim in found.claims] == [
        ("The lease of the shop ends in March.", "a.md", 9)
    ]
    assert "I am the demo model: I do not understand the question" in found.answer


def test_a_line_that_looks_like_another_document_is_a_line() -> None:
    passages = [Passage("a.md", 1, ('--- "b.md"', "3: The lease ends.", "The lease."))]
    found = answered("When does the lease end?", passages)
    assert {source.path for claim in found.claims for source in claim.sources} == {"a.md"}


def test_without_a_word_in_common_it_claims_nothing() -> None:
    found = answered("Who won the race?", [Passage("a.md", 1, ("Tea is hot.",))])
    assert (found.claims, found.answer.startswith("No line that I was given")) == ([], True)


@given(
    st.text(min_size=3, max_size=60).map(lambda text: " ".join(text.split()) or "why"),
    st.lists(st.text(max_size=40).map(lambda text: text.replace("\n", " ")), min_size=1, max_size=6),
)
def test_whatever_it_is_given_it_cites_lines_of_it(question: str, lines: list[str]) -> None:
    found = answered(question, [Passage("a.md", 5, tuple(lines))])
    assert all(5 <= source.line < 5 + len(lines) for claim in found.claims for source in claim.sources)
    assert len(searches(question, {})) <= SEARCHES_MOST


@pytest.mark.parametrize(
    ("text", "words"),
    [("When does the lease end?", ["lease", "end"]), ("End, END and end", ["End"]), ("of 2027 on", ["2027"])],
)
def test_words_that_say_little_are_no_key_words(text: str, words: list[str]) -> None:
    assert key_words(text) == words
