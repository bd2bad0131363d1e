"""The words that a search goes by."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from agents.models.searched import WORD_MOST
from agents.search import words as module
from agents.search.languages import LANGUAGES, NO_LANGUAGE
from agents.search.words import ASKED_MOST, TEXT_MOST, WRITTEN_MOST, asked_words, words, written_as
from tests.budget import examples
from tests.texts import TEXTS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Refunds, refunding and a REFUND!", ["refund"]),
        ("the of and to it isn't", []),
        ('"" AND -+* OR (NEAR/3) %_\\ :&|!<>\' --', ["near", "3"]),
        ("\N{SLIGHTLY SMILING FACE}\N{VARIATION SELECTOR-16} \N{WHITE HEAVY CHECK MARK}", []),
        ("1\N{VARIATION SELECTOR-16}\N{COMBINING ENCLOSING KEYCAP}", ["1"]),
        ("Café cafe\N{COMBINING ACUTE ACCENT} CAFE", ["cafe"]),
        ("Stra\N{LATIN SMALL LETTER SHARP S}e STRASSE", ["strass"]),
        (
            "\N{FULLWIDTH LATIN CAPITAL LETTER A}\N{FULLWIDTH LATIN SMALL LETTER P}i \N{LATIN SMALL LIGATURE FI}le",
            ["api", "file"],
        ),
        ("user_id e-mail v2.0", ["user", "id", "e", "mail", "v2", "0"]),
        ("退款", ["退款"]),
        ("退款单API手册", ["api", "退款", "退款单", "款单", "手册"]),
        ("猫", ["猫"]),
        ("がか", ["がか"]),
        ("회의를", ["회의", "회의를", "의를"]),
        ("\0\ud800x", ["x"]),
        ("हिन्दी", ["हिन्दी"]),
        ("\N{ARABIC LETTER KAF}\N{ARABIC FATHA}\N{ARABIC LETTER TEH}", ["\N{ARABIC LETTER KAF}\N{ARABIC LETTER TEH}"]),
    ],
)
def test_a_text_has_these_words(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_the_language_says_which_words_tell_nothing_and_which_endings_do_not_count(settings: Settings) -> None:
    text = "Die Rechnungen für the Rechnung"
    assert words(text) == ["die", "rechnungen", "fur", "rechnung"]
    settings.AGENTSITE_SEARCH_LANGUAGE = "german"
    assert words(text) == ["rechnung", "the"]
    settings.AGENTSITE_SEARCH_LANGUAGE = NO_LANGUAGE
    assert words(text) == ["die", "rechnungen", "fur", "the", "rechnung"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_a_stemmer_and_words_that_tell_nothing(language: str, settings: Settings) -> None:
    settings.AGENTSITE_SEARCH_LANGUAGE = language
    assert words("Agentsite 24") != []
    assert len(module._say_nothing(language)) > 20
    assert words(" ".join(sorted(module._say_nothing(language)))) == []
    assert language in written_as()


@how(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60) | st.sampled_from(sorted(TEXTS.values())))
def test_words_are_plain_and_fit_their_column_whatever_the_text(text: str) -> None:
    found = words(text)
    assert len(set(found)) == len(found)
    assert "" not in found
    assert all(len(word) <= WORD_MOST and not any(c.isspace() or c == "\0" for c in word) for word in found)
    assert words(f"{text} {text}") == found


def test_neither_a_row_nor_a_search_has_more_words_than_a_database_takes_at_once() -> None:
    """In a text without blanks, each character begins two."""
    chance = random.Random(1)
    text = "".join(chance.choices([chr(0x4E00 + n) for n in range(3000)], k=20_000))
    assert words(text) == words(text[:5000])[:WRITTEN_MOST]
    asked = asked_words(text * 10)
    assert len(asked) == 2 * ASKED_MOST
    assert asked[0] == text[:2]
    assert asked[-1] == text[-2:]
    assert asked_words("Refunds, refunding and a REFUND!") == ["refund"]


def test_what_is_longer_than_anybody_reads_is_not_looked_at() -> None:
    assert words(f"{'a' * 70} {'. ' * TEXT_MOST} end") == ["a" * WORD_MOST]
