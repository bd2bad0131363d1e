"""The demo model's refactorings change how code is written, and never what it means."""

from __future__ import annotations

import ast

import pytest

from agents.providers.demo.rewriting import renamed, repeated_value, with_constant, without_trailing_blanks


def test_a_value_gets_its_name_below_the_head_of_the_module() -> None:
    source = '"""Docs."""\n\nimport os\n\nHOME = os.curdir\n\n\ndef f():\n    return "left" + "left"\n'
    after = with_constant(source, '"left"', "LEFT")
    assert after == (
        '"""Docs."""\n\nimport os\n\nLEFT = "left"\n\nHOME = os.curdir\n\n\ndef f():\n    return LEFT + LEFT\n'
    )
    assert with_constant("x = 40\ny = 40\n", "40", "N") == "N = 40\n\n\nx = N\ny = N\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a.center(72)\nb.ljust(72)\n", ("72", "WIDTH")),
        ("x = 3.5\ny = 3.5\n", ("3.5", "NUMBER_3_5")),
        ("x = 'not found'\ny = 'not found'\n", ("'not found'", "NOT_FOUND")),
        ("é = 'naïve é'; z = 'naïve é'\n", ("'naïve é'", "NA_VE")),
        ("x = 1\ny = 1\nz = True\n", None),  # nobody names a 1
        ("x = 'ab'\ny = 'ab'\n", None),
        ("def f():\n    'Words.'\ndef g():\n    'Words.'\n", None),  # docstrings
        ("x = f'{1:40} {40} word'\ny = f'{40} word'\n", None),
        ("match x:\n    case 404: pass\n    case [404]: pass\n", None),  # a name would match anything
        ("WIDTH = 3\na.center(72)\nb.ljust(72)\n", None),  # the name is taken
        ("x = 40\n", None),
        ("x = (40\n", None),  # no Python
        ("x = '!!!!'\ny = '!!!!'\n", None),  # no name for it
    ],
)
def test_what_it_finds_to_name(source: str, found: tuple[str, str] | None) -> None:
    assert repeated_value(source) == found
    if found:
        changed = with_constant(source, *found)
        assert changed
        ast.parse(changed)


def test_what_would_mean_something_else_is_left_as_it_is() -> None:
    assert with_constant("x = 40if 40 else 0\n", "40", "N") is None  # `Nif` would be another name
    assert with_constant("x = 40\n", "41", "N") is None
    assert with_constant("x = 40\n", "40", "class") is None
    assert with_constant("x = 40\nN = 1\n", "40", "N") is None


def test_whole_words_are_renamed_and_blanks_at_ends_removed() -> None:
    assert renamed("cart = carts[cart]  # the cart", "cart", "basket") == "basket = carts[basket]  # the basket"
    assert renamed("carts", "cart", "basket") is None
    assert without_trailing_blanks("a \n\tb\t\n\nc") == "a\n\tb\n\nc"
