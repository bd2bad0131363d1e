"""Cells of tables: what stays on one line, and what needs room."""

from __future__ import annotations

import pytest

from conversations.display.cells import cell_class


@pytest.mark.parametrize(
    "text",
    ["", "x", "1918.4 / 0", "-12,345.67 EUR", "2025-08-14", "INV-2025-0801-A", "14 Aug 2025", "\u6771\u4eac", "12 %"],
)
def test_a_word_and_a_figure_stay_on_one_line(text: str) -> None:
    assert cell_class(text) == "whole"


@pytest.mark.parametrize("text", ["New York", "14 and 15 August", "3 files"])
def test_words_break_at_blanks(text: str) -> None:
    assert not cell_class(text)


@pytest.mark.parametrize("text", ["1" * 25, "1 " * 13, "several words that need lines", "\u6771\u4eac" * 7])
def test_a_long_text_has_room_for_its_lines(text: str) -> None:
    assert cell_class(text) == "long"
