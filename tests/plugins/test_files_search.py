"""Searching the files of a workspace."""

from __future__ import annotations

import time

import pytest

from agents.plugins.files import searching, tools
from agents.plugins.files.tools import search_files
from tests.plugins.calls import SECRET, Desk


@pytest.fixture
def tree(desk: Desk) -> Desk:
    (desk.workspace / "src" / "deep").mkdir(parents=True)
    (desk.workspace / "src" / "main.py").write_text("import os\n\nprint('Hello (world)')\n")
    (desk.workspace / "src" / "deep" / "util.py").write_text("def hello():\r\n    return 1\r\n")
    (desk.workspace / "notes.txt").write_text("hello\n")
    (desk.workspace / "image.png").write_bytes(b"hello\0hello")
    (desk.workspace / "out").symlink_to(desk.outside)
    return desk


async def test_it_finds_lines_with_their_places(tree: Desk) -> None:
    assert await tree.call(search_files, pattern="hello") == "notes.txt:1: hello\nsrc/deep/util.py:1: def hello():"
    assert await tree.call(search_files, pattern="(world)", path="src/") == "src/main.py:3: print('Hello (world)')"
    assert await tree.call(search_files, pattern="hello", path="./notes.txt") == "notes.txt:1: hello"
    assert await tree.call(search_files, pattern="nowhere") == "[Nothing found.]"


async def test_it_finds_patterns_in_some_files(tree: Desk) -> None:
    found = await tree.call(search_files, pattern=r"^(import|def)\b", regex=True)
    assert found == "src/deep/util.py:1: def hello():\nsrc/main.py:1: import os"
    assert (await tree.call(search_files, pattern="HELLO", ignore_case=True)).count("\n") == 2
    assert await tree.call(search_files, pattern="hello", glob="*.py") == "src/deep/util.py:1: def hello():"
    assert await tree.call(search_files, pattern="hello", glob="src/*.py") == "src/deep/util.py:1: def hello():"
    assert await tree.call(search_files, pattern="hello", glob="*.md") == "[Nothing found.]"


async def test_it_looks_at_nothing_outside_and_at_no_binary(tree: Desk) -> None:
    assert await tree.call(search_files, pattern=SECRET) == "[Nothing found.]"
    assert "image" not in await tree.call(search_files, pattern="hello")


@pytest.mark.parametrize("pattern", ["(a", "(?=a)", "(.)\\1"])
async def test_what_is_no_pattern_is_told(desk: Desk, pattern: str) -> None:
    error = await desk.refused(search_files, pattern=pattern, regex=True)
    assert error.code == "bad_pattern"
    assert "b'" not in error.message


async def test_a_pattern_that_explodes_elsewhere_does_not(desk: Desk) -> None:
    """T-55: `(a+)+$` on a megabyte of one line, within 5 seconds."""
    (desk.workspace / "f").write_text("a" * 999_999 + "b\n")
    began = time.monotonic()
    assert await desk.call(search_files, pattern="(a+)+$", regex=True) == "[Nothing found.]"
    assert time.monotonic() - began < 5


async def test_more_than_can_be_shown_says_how_to_see_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.workspace / "f").write_text("x\n" * 101)
    lines = (await desk.call(search_files, pattern="x")).split("\n")
    assert lines[99:] == [
        "f:100: x",
        "[Only the first 100 lines: give a folder or a glob, or a longer pattern.]",
    ]
    (desk.workspace / "f").write_text("x\n" * 100)
    assert (await desk.call(search_files, pattern="x")).split("\n")[-1] == "f:100: x"
    monkeypatch.setattr(searching, "FILES_MOST", 0)
    assert "[Only the first 0 files" in await desk.call(search_files, pattern="x")


async def test_a_long_line_is_cut_around_what_was_found(desk: Desk) -> None:
    (desk.workspace / "f").write_text("a" * 5_000 + "needle" + "b" * 5_000 + "\n" + "needle" + "c" * 5_000)
    first, second = (await desk.call(search_files, pattern="needle")).split("\n")
    assert len(first) < 220
    assert "aneedleb" in first
    assert first.startswith("f:1: ...a")
    assert second.startswith("f:2: needlec")
    assert second.endswith("c...")


async def test_it_stops_in_time_and_says_where(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SECONDS_MOST", 0.0)
    (desk.workspace / "f").write_text("a\nx\n")
    assert await desk.call(search_files, pattern="x") == (
        "[Nothing found.]\n[Stopped after 0 seconds at f: give a folder or a glob.]"
    )


@pytest.mark.parametrize("glob", ["", "*.md"], ids=["none is text", "none fits"])
async def test_it_stops_in_time_where_there_is_nothing_to_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, glob: str
) -> None:
    """However many files it only passes by."""
    for name in range(200):
        (desk.workspace / f"{name:03}").write_bytes(b"x\0")
    monkeypatch.setattr(searching, "SECONDS_MOST", 0.0001)
    found = await desk.call(search_files, pattern="x", glob=glob)
    assert found.startswith("[Nothing found.]\n[Stopped after 0 seconds at ")


async def test_what_is_too_large_is_named(desk: Desk) -> None:
    with (desk.workspace / "sparse").open("wb") as stream:
        stream.truncate(4 * 2**30)
    (desk.workspace / "endless").write_text("x" * 1_000_001 + "\nx\n")
    assert await desk.call(search_files, pattern="x") == (
        "endless:2: x\n[Skipped, in whole or in part, because too large: endless, sparse.]"
    )


async def test_a_name_cannot_pass_for_a_result(desk: Desk) -> None:
    (desk.workspace / "a:1: x\nb").write_text("x\n")
    assert await desk.call(search_files, pattern="x") == "a:1: x\\nb:1: x"


def test_it_reads_and_asks_nobody() -> None:
    assert (search_files.risk, search_files.approval, tools.FOUND_MOST) == ("read", False, 100)
