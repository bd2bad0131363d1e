"""The words of rows, and the search in them: the same on every database, and in whichever order rows were saved."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models import SearchedWord, WordCount
from agents.search.index import Match, best, drop, put
from agents.search.words import words
from tests.budget import examples
from tests.conversations.recorded import at_once

pytestmark = pytest.mark.django_db

Text = tuple[str, str]
SOME = st.sampled_from(["refund", "letter", "customer", "Kündigung", "退款", "tax", "invoice", "the"])
TEXTS = st.tuples(st.lists(SOME, max_size=2), st.lists(SOME, max_size=5)).map(
    lambda t: (" ".join(t[0]), " ".join(t[1]))
)
numbers = itertools.count()


def collection() -> str:
    """The name of one that no other example has."""
    return f"test:{next(numbers)}"


def filled(texts: Iterable[Text]) -> str:
    """A collection of these texts, numbered from 1."""
    name = collection()
    for row, text in enumerate(texts, 1):
        put(name, row, *text)
    return name


def found(name: str, text: str, most: int = 10, among: set[int] | None = None) -> list[int]:
    return [match.row for match in best(name, text, most, among)]


def standing(name: str) -> tuple[list[tuple[int, str, bool]], dict[str, int]]:
    """All that is written of a collection: its words and its counts."""
    written = SearchedWord.objects.filter(collection=name).order_by("row", "word")
    counts = WordCount.objects.filter(collection=name)
    return list(written.values_list("row", "word", "in_title")), dict(counts.values_list("word", "rows"))


def test_a_title_counts_more_and_rare_words_count_more() -> None:
    texts = [("Refunds", "write a letter"), ("Letters", "about a refund"), ("Taxes", "letter"), ("Salaries", "letter")]
    name = filled(texts)
    assert found(name, "How do refunds work?") == [1, 2]
    assert found(name, "a letter") == [2, 1, 3, 4]
    first, second = best(name, "refunds", 2)
    assert first.score == pytest.approx(5 * second.score) == pytest.approx(5 * math.log(1 + 4 / 2))


def test_equal_ones_come_by_id_and_no_more_than_asked_for() -> None:
    name = filled([("", "invoice")] * 5)
    assert found(name, "invoice", most=3) == [1, 2, 3]
    assert found(name, "invoice", most=0) == []
    assert found(name, "invoice", among={2, 4, 9}) == [2, 4]
    assert found(name, "invoice", among=set()) == []


def test_a_row_that_shares_one_of_many_words_is_kept_out() -> None:
    """One of three is enough, and of more, two, or one in its title; words that nobody has written are many, too."""
    name = filled([("Refunds", "customers want money")])
    assert found(name, "Refund for Miller") == [1]
    assert found(name, "Which weather will our customer in Leeds have tomorrow?") == []
    assert found(name, "Which weather will our customer who wants money have tomorrow?") == [1]
    assert found(name, "I need to refund Miller for the broken kettle.") == [1]


def test_a_word_of_many_rows_is_not_looked_for_but_in_small_collections_it_is() -> None:
    assert len(found(filled([("", "tax")] * 20), "tax", most=50)) == 20
    assert found(filled([("", "tax")] * 21), "tax", most=50) == []
    name = filled([("", "tax")] * 30 + [("", "other")] * 600)
    assert len(found(name, "tax", most=50)) == 30


def test_one_word_is_enough_if_the_caller_says_so() -> None:
    name = filled([("", "I prefer green tea."), ("", "My boss is Ann.")])
    asked = "Which tea shall we order for our guests tomorrow?"
    assert found(name, asked) == []
    assert [match.row for match in best(name, asked, 5, one_is_enough=True)] == [1]
    assert best(name, "Nobody wrote this at all.", 5, one_is_enough=True) == []


def test_usual_words_are_looked_for_if_there_are_no_others_and_the_caller_says_so() -> None:
    name = filled([("", "Acme pays late.")] * 21 + [("", "Acme has a telephone.")])
    assert found(name, "Acme") == []
    for text, rows in (("Acme", [1, 2, 3]), ("Acme unheard", [1, 2, 3]), ("the telephone of Acme", [22])):
        assert [match.row for match in best(name, text, 3, one_is_enough=True)] == rows


def test_of_a_long_text_the_beginning_and_the_end_are_looked_at() -> None:
    """A question stands before what somebody has pasted, or behind it."""
    name = filled([("Refunds", "x")])
    noise = " ".join(f"noise{n}" for n in range(20_000))
    assert found(name, f"Refunds? {noise}") == found(name, f"{noise} Refunds?") == [1]
    assert found(name, f"{noise} Refunds? {noise}") == []


@pytest.mark.parametrize(
    "text", ["", "the of and", "\" AND ( * ) '", "%_\\", "\N{PARTY POPPER}", "\0", "nobody wrote this"]
)
def test_a_text_that_says_nothing_finds_nothing(text: str) -> None:
    assert found(filled([("The of and", "the"), ("", ""), ("\N{PARTY POPPER}", "%_\\")]), text) == []


def test_chinese_is_found_by_words_of_two_and_more_characters() -> None:
    name = filled([("退款", "客户要求退款时"), ("发票", "开发票"), ("Refunds", "in English")])
    assert found(name, "怎么退款?") == [1]
    assert found(name, "发票") == [2]


def test_no_other_collection_is_searched_nor_counted() -> None:
    one, other = filled([("Refunds", "x")]), filled([("Refunds", "y"), ("Refunds", "z")])
    before = best(one, "refunds", 5)
    put(other, 3, "Refunds", "")
    drop(other, 1)
    assert best(one, "refunds", 5) == before
    assert found(other, "refunds") == [2, 3]


def test_a_long_text_is_looked_for_by_its_rarest_words() -> None:
    """By far more than six of them: else one of 5,000 words would find whatever has two of these by chance."""
    texts = [(f"title{n}", " ".join(f"word{n + i}" for i in range(12))) for n in range(400)]
    name = filled(texts)
    text = " ".join(f"word{n}" for n in range(395, 412)) + " ".join(f" noise{n}" for n in range(4000))
    assert found(name, text, most=1) == [400]


def reference(texts: dict[int, Text], text: str) -> list[Match]:
    """What is found, worked out from the texts themselves: few enough that each word counts."""
    stand = {row: (set(words(title)), set(words(title)) | set(words(body))) for row, (title, body) in texts.items()}
    counts = Counter(word for _, all_words in stand.values() for word in all_words)
    asked = words(text)
    looked_for = sorted((counts[word], word) for word in asked if word in counts)
    least = math.ceil(min(sum(word in counts or word.isascii() for word in asked), 6) / 3)
    scores = {}
    for row, (title, all_words) in stand.items():
        shared = [word for _, word in looked_for if word in all_words]
        if sum(2 if word in title else 1 for word in shared) >= max(least, 1):
            weights = [math.log(1 + len(texts) / counts[word]) * (5 if word in title else 1) for word in shared]
            scores[row] = math.fsum(weights)
    return sorted((Match(row, score) for row, score in scores.items()), key=lambda m: (-m.score, m.row))


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(TEXTS, max_size=8), st.lists(SOME, max_size=6).map(" ".join))
def test_it_finds_what_the_texts_say(texts: list[Text], text: str) -> None:
    """On whichever database the tests run: so both find the same, in the same order."""
    assert best(filled(texts), text, 100) == reference(dict(enumerate(texts, 1)), text)


Change = tuple[int, Text | None]
CHANGES = st.lists(st.tuples(st.integers(1, 4), TEXTS | st.none()), max_size=12)


def changed(changes: Iterable[Change]) -> tuple[str, dict[int, Text]]:
    """A collection after these saves and deletions, and the texts that it then has."""
    name, texts = collection(), dict[int, Text]()
    for row, text in changes:
        if text is None:
            drop(name, row)
            texts.pop(row, None)
        else:
            put(name, row, *text)
            texts[row] = text
    return name, texts


@settings(max_examples=examples(30), deadline=None)
@given(CHANGES)
def test_what_is_written_depends_on_the_rows_and_not_on_how_they_came_to_be(changes: list[Change]) -> None:
    name, texts = changed(changes)
    other = collection()
    for row, text in reversed(texts.items()):
        put(other, row, *text)
    assert standing(name) == standing(other)


@settings(max_examples=examples(30), deadline=None)
@given(CHANGES)
def test_counts_are_what_counting_gives_and_nothing_is_left_of_rows_that_are_gone(changes: list[Change]) -> None:
    name, texts = changed(changes)
    written, counts = standing(name)
    assert counts == Counter(word for _, word, _ in written)
    assert {row for row, _, _ in written} == set(texts)
    for row in texts:
        drop(name, row)
    assert standing(name) == ([], {})


@pytest.mark.django_db(transaction=True)
def test_several_who_save_at_once_leave_the_right_counts() -> None:
    """And none waits for another in a circle, though their texts have words in common, in another order."""
    name = collection()
    texts = [("a b c d", "e f g h"), ("h g f e", "d c b a")]

    def saving(start: int) -> None:
        for turn in range(12):
            with transaction.atomic():
                for row in (start, 9):  # and one row that all of them save
                    put(name, row, *texts[(turn + start) % 2])

    at_once(lambda: saving(1), lambda: saving(2), lambda: saving(3))
    written, counts = standing(name)
    assert counts == Counter(word for _, word, _ in written)
    assert {row for row, _, _ in written} == {1, 2, 3, 9}


def test_words_go_back_with_the_transaction_that_wrote_them() -> None:
    name = filled([("Refunds", "")])
    before = standing(name)
    with transaction.atomic():
        put(name, 1, "Taxes", "")
        put(name, 2, "Taxes", "")
        transaction.set_rollback(True)
    assert standing(name) == before
