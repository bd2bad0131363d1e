"""Punctuation, letters and digits that look like ASCII are named on a card, and ordinary text is quiet."""

# ruff: noqa: RUF001 - characters that look like others are what this is about

import re
import time
import unicodedata

import pytest
from django.test import Client

from conversations.display.faithful import visible
from conversations.display.lookalikes import LOOKS_LIKE, lookalikes
from tests.attacks.test_marks import READABLE, escaped, number
from tests.conversations.support import asking, person

SLASHES, DASHES, COLONS, DOTS = "\u2044\u2215\uff0f", "\u2010\u2011\u2012\u2013\u2212", "\u2236\ua789", "\u2024\uff0e"

QUIET = [
    *READABLE,
    "He said – and meant it – that it’s “fine”, isn’t it…",
    "1990–2000, pages 3–5; (10–20km) −5 °C ½ 3⁄4 9:00–17:00 12∶30 $5–$10 5–10% “a”",
    "word — and—word, a • b, × 3, → next, naïve",
    "使用Python，然后（API）：见下。步骤Python：\n再见！A和B；约10，000",
    "「東京」〜 10～20、テスト。",
    "│ a │ b │\n├── x",
    "ʻokina d’être 5′ 6″ «a» ‹ b ›",
]


@pytest.mark.parametrize("like", [*SLASHES, *DASHES, *COLONS, *DOTS])
@pytest.mark.parametrize(
    "text", ["rm -r /srv{}old", "https{}//bank.example", "x{}y", "a 7{}zip", "ls /tmp{} x", "{}rf"]
)
def test_a_lookalike_at_ascii_is_named(like: str, text: str) -> None:
    token = next(each for each in text.format(like).split() if like in each)
    (sentence,) = lookalikes([text.format(like)])
    assert f"“{token}”" in sentence
    assert f"look like {LOOKS_LIKE[like]} " in sentence
    assert sentence.endswith(token.replace(like, f"[{number(like)}]"))


@pytest.mark.parametrize("like", sorted(LOOKS_LIKE))
def test_every_one_is_named_in_a_path(like: str) -> None:
    (sentence,) = lookalikes([f"cat /etc/a{like}b"])
    assert f"/etc/a[{number(like)}]b" in sentence
    assert not visible(f"/etc/a{like}b").isascii() or "U+" in visible(f"/etc/a{like}b")


def test_the_table_has_all_compatible_punctuation() -> None:
    """What Unicode itself maps to one character of ASCII punctuation."""
    forms = (chr(code) for code in (*range(0xFE50, 0xFE70), *range(0xFF00, 0xFF66)))
    plain = {each for each in forms if re.fullmatch(r"[!-/:-@\[-`{-~]", unicodedata.normalize("NFKC", each))}
    assert plain <= LOOKS_LIKE.keys()


def test_an_address_is_no_number() -> None:
    """Nor a file; a range of numbers is."""
    assert len(lookalikes(["127\u20240\u20240\u20241 1\u20132.txt file1\u20132 10\uff0e0\uff0e0\uff0e1"])) == 4


@pytest.mark.parametrize(
    "text", ["\U0001d69b\U0001d696 -rf", "curl \U0001d7cf\U0001d7d0\U0001d7d5.0.0.1", "l\U0001d42c x"]
)
def test_letters_of_mathematics_are_named_also_alone(text: str) -> None:
    (sentence,) = lookalikes([text])
    assert "U+1D" in sentence
    ascii = unicodedata.normalize("NFKC", text)
    assert any(each in ascii for each in sentence.partition("look like ")[2].split())


@pytest.mark.parametrize("text", QUIET)
def test_ordinary_text_is_quiet(text: str) -> None:
    assert lookalikes([text, unicodedata.normalize("NFD", text)]) == []


def test_many_are_counted_and_long_ones_are_cut() -> None:
    sentences = lookalikes(
        [" ".join(f"/a{each}\u2215b" for each in range(1_000)), "a" * 9_000 + "\u2215" + "b" * 9_000]
    )
    assert len(sentences) == 6
    assert "996 more" in sentences[-1]
    assert len(lookalikes(["a" * 9_000 + "\u2215" + "b" * 9_000])[0]) < 250


@pytest.mark.parametrize("unit", ["\u2215", "a\u2215", "1\u2013", "\u2013 ", "1.1,", "\U0001d69b", "\uff0c"])
def test_nonsense_takes_linear_time(unit: str) -> None:
    def seconds(characters: int) -> float:
        text = unit * (characters // len(unit))
        start = time.process_time()
        lookalikes([text])
        return time.process_time() - start

    assert seconds(300_000) < 12 * max(seconds(60_000), 0.1)


@pytest.mark.django_db
def test_a_card_names_them(client: Client) -> None:
    owner = person("anna")
    client.force_login(owner)
    story, _ = asking(owner, "rm –rf /srv∕old")
    html = client.get(f"/c/{story.conversation.pk}/").text
    assert "–rf” has other characters that look like -" in html
    assert "/srv[U+2215]old" in html


@pytest.mark.parametrize("joiner", ["\U00011a47", "\U000113d0"])
def test_a_joiner_that_joins_nothing_is_shown(joiner: str) -> None:
    """It has no form of its own: at the end of a word, or before another script, nobody sees it."""
    for text in (f"\U00011a0b{joiner}", f"\U00011392{joiner}a", f"\U00011a0b{joiner} \U00011a0b"):
        assert number(joiner) in escaped(text)


@pytest.mark.parametrize("code", [0x13440, *range(0x13447, 0x13456)])
def test_what_changes_hieroglyphs_is_shown(code: int) -> None:
    """They mirror or damage another sign: also where this Python knows them as marks."""
    assert escaped(f"\U00013000{chr(code)}") == [number(chr(code))]
