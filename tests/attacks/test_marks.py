"""Characters that hide, cover or imitate others are shown on a card, and what a person writes stays readable."""

# ruff: noqa: RUF001 - letters that look like others are what this is about

import json
import re
import time
import unicodedata
from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import ToolOutput
from conversations.display.diff import diff
from conversations.display.faithful import plain, spelled_out, unseen, visible
from conversations.display.mixed import mixed_words
from tests.attacks.unicode16 import COMBINING, FORMAT, IGNORABLE
from tests.budget import share
from tests.conversations.support import asking, person

MARK = re.compile(r'<span class="esc" title="[^"]*">(.*?)</span>')

BLANK = ["\u1680", "\u2000", "\u2028", "\u202f", "\u3000", "\u2800", "\ufffc", "\U0001d159", "\U00016fe4",
         "\U00013441", "\ue000", "\U0010fffd", "\u0378", "\U0002fffe", "\ud800"]  # fmt: skip
"""Odd white space, blanks among letters and symbols, private characters, and ones that are not assigned."""

COVERING = ["\u0334", "\u0335", "\u0336", "\u0337", "\u0338", "\u20d2", "\u20dd", "\u20e3", "\u0488", "\u20e5",
            "\u035c", "\u0361", "\u0305", "\u0332", "\u0333", "\u0489", "\U0001d167"]  # fmt: skip
"""Marks that go through a letter, round it, along it, or over two."""

READABLE = [
    "naïve Straße, Việt Nam, ẹ́kọ́, g̃uarani, Ἀθῆναι ᾧ, Łódź, Привет, ёлка",
    "हिन्दी क्षत्रिय", "தமிழ்", "বাংলা", "العَرَبِيَّة", "שָׁלוֹם עֲלֵיכֶם", "ภาษาไทยที่", "ខ្មែរ", "မြန်မာ ကြွေးမြဲ", "བསྒྲུབས", "ලංකා",
    "東京 テキスト が 한국어 中文", "🙂 👍🏽 🇩🇪", "∑ → ½ €",
]  # fmt: skip


def escaped(text: str) -> list[str]:
    return MARK.findall(visible(text))


def number(character: str) -> str:
    return f"U+{ord(character):04X}"


@pytest.mark.parametrize("text", READABLE)
def test_what_languages_write_stands_as_it_is_composed_or_not(text: str) -> None:
    for form in (text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)):
        assert visible(form) == form
        assert not unseen(form)


@pytest.mark.parametrize("around", ["a{}b", "{}", "1{}", "\u0915{}\u0937", "\U0001f469{}\U0001f4bb", "\u0628{}\u0628"])
def test_no_ignorable_or_format_character_is_left_anywhere(around: str) -> None:
    for character in {*IGNORABLE, *FORMAT, *BLANK}:
        text = around.format(character)
        assert escaped(text) == [number(character)], number(character)
        assert unseen(text)
        assert character not in spelled_out(text)
        assert json.loads(spelled_out(text)) == text
        assert character == "\ud800" or character not in plain(text)


@pytest.mark.parametrize("base", ["", "1", "=", "/", "-", " ", "\n", "\t", "🙂", "\u200b", "\u0338", "ℵ\u20dd"])
def test_a_mark_on_what_is_no_letter_is_shown(base: str) -> None:
    for mark in COMBINING:
        assert number(mark) in escaped(f"{base}{mark}"), number(mark)


def test_a_mark_that_covers_a_letter_is_shown() -> None:
    for mark in COVERING:
        assert escaped(f"rm{mark}x") == [number(mark)]


def test_a_pile_of_marks_is_cut_short() -> None:
    for base in "aéЖकبก":
        for mark in COMBINING:
            left = len(f"{base}{mark * 9}") - len(escaped(f"{base}{mark * 9}"))
            assert left <= 2, number(mark)  # the letter, and the mark once
    zalgo = "Z" + "".join(map(chr, range(0x300, 0x334)))
    assert len(escaped(zalgo)) >= 48
    assert escaped("Z\u0311\u0306\u0302\u0301") == ["U+0302", "U+0301"]


def test_a_dot_makes_no_other_i() -> None:
    assert escaped("i\u0307ı\u0307") == ["U+0307", "U+0307"]


@pytest.mark.parametrize("double", ["\u037e", "\u1fef", "\u212a", "\u0340", "\uf900"])
def test_a_double_of_another_character_is_shown(double: str) -> None:
    assert escaped(f"ls{double} x") == [number(double)]


def test_a_joiner_of_letters_joins_letters() -> None:
    assert escaped("က\u1039က ក\u17d2ក") == []
    assert escaped("က\u1039 က\u1039\u103a ក\u17d21 ក\u17d2") == ["U+1039", "U+1039", "U+103A", "U+17D2", "U+17D2"]


def test_a_mark_does_not_climb_onto_an_escape() -> None:
    assert escaped("a\u0338\u0301") == ["U+0338", "U+0301"]


LETTERS = st.sampled_from("aéiкαकب1=/")
MARKS = st.sampled_from([*COMBINING, *"\u0300\u0301\u0302\u0307\u0323\u0338\u200d\u200b\ufe0f"])
TEXTS = st.lists(LETTERS | MARKS, max_size=12).map("".join)
PAIRS = st.lists(st.tuples(LETTERS | MARKS, st.booleans(), st.booleans()), max_size=12).map(
    lambda drawn: tuple("".join(each[0] for each in drawn if each[side]) for side in (1, 2))
)
"""Two texts, each with some characters of the same text."""


def seen(text: str) -> str:
    """What is drawn: what composes is composed, and what is ignorable, or twice on a letter, is not there."""
    shown = MARK.sub(lambda found: f"\n{found[1]}\n", visible(text))
    drawn = unicodedata.normalize("NFC", "".join(each for each in shown if each not in IGNORABLE))
    return "".join(each for each, last in pairwise([*drawn[::-1], ""]) if each != last or each not in COMBINING)[::-1]


@given(PAIRS)
def test_texts_that_differ_look_different(pair: tuple[str, ...]) -> None:
    one, other = pair
    if unicodedata.normalize("NFC", one) != unicodedata.normalize("NFC", other):
        assert seen(one) != seen(other)


@given(TEXTS, MARKS, st.integers(0, 12))
def test_a_mark_that_is_added_is_seen(text: str, mark: str, at: int) -> None:
    assert seen(text) != seen(text[:at] + mark + text[at:])


@pytest.mark.parametrize(
    ("text", "scripts", "spelled"),
    [
        ("curl https://pаypal.example", "Latin and Cyrillic", "p[U+0430]ypal"),
        ("сonfig", "Latin and Cyrillic", "[U+0441]onfig"),
        ("passwοrd", "Latin and Greek", "passw[U+03BF]rd"),
        ("𝚛m_x", "Latin and Mathematical", "[U+1D69B]m_x"),
        ("paypa\u217c", "Latin and Roman numerals", "paypa[U+217C]"),
        ("file২", "Latin and Bengali", "file[U+09E8]"),
        ("p\u0430\u0301ypal", "Latin and Cyrillic", "p[U+0430]\u0301ypal"),
    ],
)
def test_a_word_that_mixes_scripts_is_named(text: str, scripts: str, spelled: str) -> None:
    (sentence,) = mixed_words([text])
    assert f"mixes {scripts}." in sentence
    assert sentence.endswith(spelled)


@pytest.mark.parametrize(
    "text", [*READABLE, "日本語のTシャツ", "한국KBS漢", "ㄅ中A", "µm", "H₂O m² 1ª", "ru-Привет", "x = да1", "Ｆ1"]
)
def test_words_that_languages_write_are_not_named(text: str) -> None:
    assert mixed_words([text, unicodedata.normalize("NFD", text)]) == []


def test_many_words_are_counted() -> None:
    sentences = mixed_words([" ".join(f"раypal{number}" for number in range(1_000)), "а" * 1_000 + "b"])
    assert len(sentences) == 6
    assert "996 more words" in sentences[-1]


@pytest.mark.parametrize(
    "unit",
    share(
        ["\u0301", "a\u0338", "a\u0301\u0323\u0338", "\u200d", "aб", "हिन्दी", "pа ", "\u1039\u1000", " \u0301"], of=3
    ),
)
def test_nonsense_takes_linear_time(unit: str) -> None:
    def seconds(characters: int) -> float:
        text = unit * (characters // len(unit))
        start = time.process_time()
        visible(text)
        mixed_words([text])
        spelled_out(text)
        return time.process_time() - start

    assert seconds(300_000) < 12 * max(seconds(60_000), 0.1)  # quadratic would be 25 times


@pytest.mark.django_db
def test_a_card_shows_it_and_the_digest_is_of_what_runs(client: Client) -> None:
    owner: User = person("anna")
    client.force_login(owner)
    command = "rm -rf /srv\u0338/old \ufffc && curl pаypal.example"
    story, output = asking(owner, command)
    _, other = asking(owner, "rm -rf /srv/old  && curl paypal.example")
    html = client.get(f"/c/{story.conversation.pk}/").text
    assert {"U+0338", "U+FFFC", "U+0430"} <= set(re.findall(r"U\+[0-9A-F]{4,6}", html))
    assert "\u0338" not in html
    assert "mixes Latin and Cyrillic" in html
    assert output.digest != other.digest
    entry = output.entry()
    assert isinstance(entry, ToolOutput)
    assert entry.input == {"command": command}


def test_a_diff_parts_no_letter_from_its_marks() -> None:
    (hunk,) = diff(Change(path="a", before="नाम हि है यहाँ", after="नाम ही है यहाँ")).hunks
    assert "U+" not in "".join(row.html for row in hunk.rows)
    (hunk,) = diff(Change(path="a", before="x = a == b", after="x = a =\u0338= b")).hunks
    assert "U+0338" in hunk.rows[-1].html


def test_a_change_of_nothing_but_marks_is_too_large_to_show() -> None:
    assert Change(path="a", before=None, after="/\u0338" * 6_000).too_large
    assert not Change(path="a", before=None, after="हिन्दी " * 6_000).too_large
