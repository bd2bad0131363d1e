"""The table of crash points is complete, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.crash.points import POINTS, TABLE, crash_point

ROOT = Path(__file__).resolve().parents[2]


def test_each_crash_point_is_shown_or_says_why_not() -> None:
    """CP01..CP40."""
    assert list(TABLE) == [f"CP{number:02}" for number in range(1, 41)]
    for cp, shown in TABLE.items():
        assert bool(shown.matrix or shown.tests) != bool(shown.why_not), cp


def test_the_matrix_walks_the_points_that_the_table_says() -> None:
    records = [":action_result", "1:action_start", "1:action_result", "1/0:action_start", "1/0:action_result"]
    records += ["1/0/human:action_call,1:action_result,:pause"]
    walked = {
        crash_point(point, about)
        for point in POINTS
        for about in (records if point.endswith(("record", "commit")) else [""])
    }
    assert walked == {cp for cp, shown in TABLE.items() if shown.matrix}


@pytest.mark.parametrize("name", sorted({test for shown in TABLE.values() for test in shown.tests}))
def test_a_named_test_is_there(name: str) -> None:
    file, _, function = name.partition("::")
    if function:
        assert re.search(rf"^(?:async )?def {function}\(", (ROOT / file).read_text(), re.MULTILINE)
    else:
        assert (ROOT / file).exists()
