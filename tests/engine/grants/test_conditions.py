"""Conditions: what each operator allows, and what none of them lets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engine.grants.conditions import Condition, Operator, of_input, parts_of, problems, unmet
from agents.engine.ledger import JSON, canonical
from tests.budget import examples


def that(field: str, operator: str, value: JSON = None) -> Condition:
    return Condition(field, Operator(operator), value)


def allows(input: dict[str, Any], *conditions: Condition) -> bool:
    return unmet(conditions, input) is None


@pytest.mark.parametrize(
    ("operator", "value", "met", "unmet_by"),
    [
        ("is", 1, [1], [True, 1.0, "1", None, [1], 2]),
        ("is", "a", ["a"], ["a ", "A", "", None, ["a"], "\u0430"]),
        ("is", None, [None], ["", 0, False, {}, []]),
        ("in", ["a", 2], ["a", 2], ["b", "2", 2.0, ["a"], None]),
        (
            "starts_with",
            "reports/",
            ["reports/a.txt", "reports/", "reports/..a/b", "reports/a..b"],
            ["report/a", 1, None],
        ),
        ("ends_with", ".txt", ["a.txt", ".txt"], ["a.txt ", "a.TXT", "a.txt\n", 5]),
        ("matches", "[a-z]+[.]txt", ["a.txt", "abc.txt"], ["1.txt", "a.txt.sh", "xa.txt\n", "A.txt", ["a.txt"]]),
        ("at_most", 10, [10, 9.5, -3, -(10**400)], [11, "9", True, None, 10.1, 10**400]),
        ("at_least", 10, [10, 10.5, 10**400], [9, "11", True, None]),
        ("any", None, ["x", 1, None, "--x", [], {}, ["a", "b"], {"a": {"b": 1}}], []),
    ],
)
def test_what_each_operator_allows(operator: str, value: JSON, met: list[JSON], unmet_by: list[JSON]) -> None:
    """Of the type and the value that it names, exactly; of a text, all of it."""
    condition = that("x", operator, value)
    assert [each for each in met if not allows({"x": each}, condition)] == []
    assert [each for each in unmet_by if allows({"x": each}, condition)] == []


@pytest.mark.parametrize(
    "leaves",
    [
        *("reports/../secret", "reports/./../secret", "reports/..", "reports/a/../../b", "reports\\..\\b"),
        *(
            "reports/%2e%2e/b",
            "reports/%2E./b",
            "reports/%252e%252e/b",
            "reports/..%2fsecret",
            "reports/%25252e%25252e/b",
        ),
        *("reports/a\n/etc/passwd", "reports/a\x00b", "reports/\u202egnp", "reports/a\u200b"),
        *("reports/?/../../b", "reports/#/../b"),
        *("reports/.. ", "reports/ ../b", "reports/..%20", "reports/.. /b", " ../reports"),
    ],
)
def test_no_pattern_lets_a_text_through_that_leads_elsewhere(leaves: str) -> None:
    """Whoever granted what is below a folder has not granted what is above it, however it is written."""
    for operator, value in (("starts_with", "reports"), ("matches", "(?s).*"), ("ends_with", leaves[-1])):
        condition = that("x", operator, value)
        assert not allows({"x": leaves}, condition)
    assert allows({"x": leaves}, that("x", "is", leaves)), "what was seen may run"


def test_an_address_is_granted_with_the_whole_name_of_its_server() -> None:
    """The beginning of a name is that of other servers too; the end of an address says nothing about its server."""
    assert "slash" in (that("url", "starts_with", "https://api.example.com").problem() or "")
    assert "slash" in (that("url", "starts_with", "https://").problem() or "")
    assert "slash" in (that("url", "starts_with", " https://api.example.com").problem() or "")
    granted = that("url", "starts_with", "https://api.example.com/")
    assert granted.problem() is None
    for evil in (
        "https://api.example.com.evil.org/",
        "https://api.example.com@evil.org/",
        "https://api.example.com\\@e.org/",
    ):
        assert not allows({"url": evil}, granted)
    assert not allows({"url": "https://evil.org/?.example.com"}, that("url", "ends_with", ".example.com"))
    assert allows({"url": "https://api.example.com/v1?a=b"}, granted)


def test_an_item_of_a_list_that_may_differ_is_no_option() -> None:
    """`git log --output=x` is another thing than `git log main`."""
    granted = (that("argv.0", "is", "git"), that("argv.1", "is", "log"), that("argv.2", "any"))
    assert allows({"argv": ["git", "log", "main"]}, *granted)
    for argv in (["git", "log", "--output=x"], ["git", "log", " -x"], ["git", "log"], ["git", "log", "main", "more"]):
        assert not allows({"argv": argv}, *granted)
    assert not allows({"argv": ["a", "-x"]}, that("argv", "any"), that("argv.0", "is", "a"))
    assert allows(
        {"argv": ["git", "--depth=3"]}, that("argv.0", "is", "git"), that("argv.1", "starts_with", "--depth=")
    )
    assert allows({"argv": ["git", "-v"]}, that("argv.0", "is", "git"), that("argv.1", "in", ["-v", "-q"]))


def test_what_is_not_spoken_of_is_not_granted() -> None:
    """A field more, a field less, a field with another name, one that became a list: a person is asked."""
    granted = (that("path", "starts_with", "reports/"), that("text", "any"))
    assert allows({"path": "reports/a", "text": "x"}, *granted)
    for other in (
        {"path": "reports/a"},
        {"path": "reports/a", "text": "x", "mode": "append"},
        {"file": "reports/a", "text": "x"},
        {"path": ["reports/a"], "text": "x"},
        {"path": {"": "reports/a"}, "text": "x"},
        {"path.0": "reports/a", "text": "x"},
        {},
    ):
        assert not allows(other, *granted)


def test_names_with_dots_are_other_places() -> None:
    assert dict(parts_of({"a.b": 1, "a": {"b": 2}})).keys() == {"a~1b", "a.b"}
    assert not allows({"a.b": 1}, that("a.b", "is", 1))
    assert not allows({"a": {"0": 1}}, that("a.0", "is", 1)), "an item of a list was granted, and no field of that name"


def test_all_that_is_said_of_a_value_must_hold() -> None:
    granted = (that("n", "at_least", 1), that("n", "at_most", 5))
    assert [n for n in range(8) if allows({"n": n}, *granted)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("conditions", "place", "words"),
    [
        ([that("path", "any"), that("text", "any")], "", "at least one thing"),
        ([that("path", "starts_with", ""), that("text", "any")], "path", "an empty one would allow anything"),
        ([that("path", "matches", "("), that("text", "any")], "path", "this is not a pattern: missing"),
        ([that("path", "in", []), that("text", "any")], "path", "one per line"),
        ([that("path", "at_most", "x"), that("text", "any")], "path", "give a number"),
        ([that("path", "at_most", float("nan")), that("text", "any")], "path", "no call can have this value"),
        ([that("path", "at_most", 10**9_999), that("text", "any")], "path", "no call can have this value"),
        ([that("path", "at_most", 10**400), that("text", "any")], "path", "must be allowed too"),
        ([that("path", "in", ["a", "b\x00"]), that("text", "any")], "path", "the NUL character"),
        ([that("path", "matches", "a|b\x00"), that("text", "any")], "path", "the NUL character"),
        ([that("path", "matches", "a{9999}"), that("text", "any")], "path", "pattern: invalid repetition size"),
        ([that("path", "is", "other"), that("text", "any")], "path", "must be allowed too"),
        ([that("path", "is", "a")], "text", "must be allowed too"),
        ([that("path", "is", "a"), that("text", "any"), that("gone", "any")], "gone", "must be allowed too"),
        ([that("path", "is", "a" * 5000), that("text", "any")], "path", "longer than"),
        ([that(f"f{n}", "any") for n in range(101)], "", "more than 100"),
    ],
)
def test_what_nobody_can_give(conditions: list[Condition], place: str, words: str) -> None:
    """Each with a sentence that says what to do, at its field."""
    found = problems(conditions, {"path": "a", "text": "b"})
    assert list(found) == [place]
    assert words in found[place]


TEXTS = st.text(st.sampled_from("ab./\\%2e -~\n\u202e\"'"), max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NAMES = TEXTS | st.sampled_from("012")
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
INPUTS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


@given(seen=INPUTS, other=INPUTS)
@settings(max_examples=examples(300), deadline=None)
def test_conditions_that_name_every_value_allow_this_input_alone(seen: dict[str, Any], other: dict[str, Any]) -> None:
    """Whatever the names and values are: what differs in any way from what was seen is not allowed."""
    conditions = of_input(seen)
    assert unmet(conditions, seen) is None
    assert (unmet(conditions, other) is None) == (canonical(seen) == canonical(other))


@given(prefix=st.text("abc/", min_size=1, max_size=6), value=TEXTS, kept=TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_what_starts_alike_stays_where_it_is(prefix: str, value: str, kept: str) -> None:
    """What is allowed begins with the prefix, is one line, and has no step to elsewhere; the rest is as it was seen."""
    conditions = (that("x", "starts_with", prefix), that("y", "is", kept))
    if allows({"x": prefix + value, "y": kept}, *conditions):
        assert (prefix + value).isprintable()
        assert not {".", ".."} & set((prefix + value).replace("\\", "/").split("/"))
    assert not allows({"x": value if not value.startswith(prefix) else "", "y": kept}, *conditions)
    assert not allows({"x": prefix + value, "y": f"{kept}!"}, *conditions)
