"""Regular expressions that Python 3.11.2, which Debian 12 has, reads as later ones do.

Before 3.11.5, a possessive group whose content fails halfway may keep what that has read (python/cpython#106052):
`(?:ab*c)*+` matches all of "abca". A possessive atomic group, `(?>ab*c)*+`, means the same, and is read right by all.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # what compiles patterns; it has no public face
from typing import Any

import pytest

from tests.test_lines import APPS, ROOT, files

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]*\})\+")

READ_RIGHT = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN, _constants.ATOMIC_GROUP)
"""What may be repeated: one character, or an atomic group."""


def misread(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether there is a possessive group in it that is not atomic."""
    repeated = (inner[2] for op, inner in nodes(_parser.parse(pattern, flags)) if op is _constants.POSSESSIVE_REPEAT)
    return any(len(content) != 1 or content[0][0] not in READ_RIGHT for content in repeated)


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every node of a pattern, with what is in it."""
    if isinstance(tree, _parser.SubPattern):
        yield from tree
    if isinstance(tree, _parser.SubPattern | tuple | list):
        for each in tree:
            yield from nodes(each)


def with_possessive_groups() -> list[Path]:
    return [file for file in files(APPS, "*.py") if POSSESSIVE_GROUP.search(file.read_text(encoding="utf-8"))]


def patterns(file: Path) -> Iterator[tuple[str | bytes, int]]:
    """What the module compiles, and each text in it that is a pattern."""
    module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    yield from ((each.pattern, each.flags) for each in vars(module).values() if isinstance(each, re.Pattern))
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            try:
                re.compile(node.value)
            except re.error:
                continue
            yield node.value, 0


@pytest.mark.parametrize("file", with_possessive_groups(), ids=lambda file: file.name)
def test_possessive_groups_are_atomic(file: Path) -> None:
    assert [pattern for pattern, flags in patterns(file) if misread(pattern, flags)] == []


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [(r"(?:ab)*+", True), (r"x(?:a|bc)?+", True), (r"(?:(?:ab)++)", True), (r"(?>ab)*+", False), (r"[ab]*+c?+", False)],
)
def test_which_are_misread(pattern: str, wrong: bool) -> None:
    assert misread(pattern) is wrong
