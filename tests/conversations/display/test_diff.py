"""A change as people see it: a diff from which both texts can be made again, in which nothing hides."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from django.template.loader import render_to_string
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.outputs.change import LINES_MOST, Change
from conversations.display.diff import Diff, DiffRow, diff

ROWS = re.compile(
    r'<tr(?: class="(add|del|end|hunk)")?>\s*'
    r'(?:<td class="l">(\d+)</td>\s*<td class="g">(.?)</td>\s*<td class="t">(.*?)</td>'
    r"|<td colspan=\"\d\">(.*?)</td>(?:<td>(.*?)</td>)?)\s*</tr>",
    re.DOTALL,
)
WORDS = st.lists(st.sampled_from(["a", "b", "if", " ", "=", "  ", "\t", "x(1)", "é", "<b>", "&amp;", "\r"]), max_size=5)
TEXTS = st.lists(WORDS.map("".join), max_size=25).map("\n".join)


def of(before: str | None, after: str, path: str = "a.txt") -> Diff:
    return diff(Change(path=path, before=before, after=after))


def html(before: str | None, after: str, path: str = "a.txt") -> str:
    """The diff as it stands on a card."""
    return render_to_string("conversations/diff.html", {"diff": of(before, after, path)})


def ended(row: DiffRow) -> str:
    return row.text + ("" if row.unended else "\n")


def made_again(shown: Diff, before: str, kinds: tuple[str, str]) -> str:
    """The text that the rows of these kinds are of, with what stands between the hunks taken from `before`."""
    old = re.findall(r"[^\n]*\n|[^\n]+", before)
    made, at = [], 0
    for hunk in shown.hunks:
        start, count = (int(n) for n in re.findall(r"-(\d+)(?:,(\d+))?", hunk.head.replace(" ", ",1 ", 2))[0])
        begins = start - (count > 0)
        made += [*old[at:begins], *(ended(row) for row in hunk.rows if row.kind in kinds)]
        at = begins + count
    return "".join(made + old[at:])


@given(TEXTS, TEXTS)
def test_both_texts_can_be_made_again_from_what_is_shown(before: str, after: str) -> None:
    """Applied to the text before, the rows that are shown give the text after, and the text before itself."""
    shown = of(before, after)
    assert made_again(shown, before, ("same", "add")) == after
    assert made_again(shown, before, ("same", "del")) == before
    rows = [row for hunk in shown.hunks for row in hunk.rows]
    assert (shown.added, shown.removed) == tuple(sum(row.kind == kind for row in rows) for kind in ("add", "del"))
    for row in rows:
        text = before if row.kind == "del" else after
        assert text.split("\n")[row.number - 1] == row.text, "a line stands under its own number"


@given(TEXTS)
def test_a_new_file_is_shown_whole(after: str) -> None:
    shown = of(None, after)
    assert shown.new
    assert "".join(ended(row) for hunk in shown.hunks for row in hunk.rows) == after
    assert {row.kind for hunk in shown.hunks for row in hunk.rows} <= {"add"}


@given(TEXTS.filter(lambda text: "\r" not in text), TEXTS.filter(lambda text: "\r" not in text))
def test_the_html_says_what_the_rows_say(before: str, after: str) -> None:
    """Escaped, marked and signed: read as text, each line is itself; blanks at its end are marks that count them."""
    rows = [row for hunk in of(before, after).hunks for row in hunk.rows]
    shown = [found for found in ROWS.findall(html(before, after)) if found[1]]
    signs = {"same": "", "add": "+", "del": "\N{MINUS SIGN}"}
    assert [(kind or "same", int(number), sign) for kind, number, sign, *_ in shown] == [
        (row.kind, row.number, signs[row.kind]) for row in rows
    ]
    for (*_, body, _, _), row in zip(shown, rows, strict=True):
        text = unescape(strip_tags(body))
        blanks = row.text[len(row.text.rstrip(" \t")) :]
        assert text == row.text.rstrip(" \t") + blanks.replace(" ", "\u2423").replace("\t", "\u21e5")


def test_a_diff_as_people_know_it() -> None:
    """Three lines around, the numbers of each line in its own text, what goes before what comes."""
    before = "".join(f"line {n}\n" for n in range(1, 21))
    shown = of(before, before.replace("line 10\n", "line ten\nmore\n"))
    (hunk,) = shown.hunks
    assert hunk.head == "@@ -7,7 +7,8 @@"
    assert [(row.sign, row.number, row.text) for row in hunk.rows] == [
        ("", 7, "line 7"),
        ("", 8, "line 8"),
        ("", 9, "line 9"),
        ("\N{MINUS SIGN}", 10, "line 10"),
        ("+", 10, "line ten"),
        ("+", 11, "more"),
        ("", 12, "line 11"),
        ("", 13, "line 12"),
        ("", 14, "line 13"),
    ]
    assert (shown.added, shown.removed, shown.new) == (2, 1, False)


def test_far_apart_changes_stand_in_hunks_of_their_own() -> None:
    before = "".join(f"{n}\n" for n in range(1, 101))
    after = before.replace("\n10\n", "\nten\n").replace("\n90\n", "\n").removeprefix("1\n")
    assert [hunk.head for hunk in of(before, after).hunks] == [
        "@@ -1,4 +1,3 @@",
        "@@ -7,7 +6,7 @@",
        "@@ -87,7 +86,6 @@",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a\n", "a", ["\N{MINUS SIGN}a", "+a", "end"]),
        ("a", "a\n", ["\N{MINUS SIGN}a", "end", "+a"]),
        ("a", "b", ["\N{MINUS SIGN}a", "end", "+b", "end"]),
        ("x\na", "y\na", ["\N{MINUS SIGN}x", "+y", "a", "end"]),
        (None, "a", ["+a", "end"]),
        (None, "a\n", ["+a"]),
    ],
)
def test_a_missing_newline_is_told_where_it_is_missing(before: str | None, after: str, told: list[str]) -> None:
    found = [row for row in ROWS.findall(html(before, after)) if row[0] != "hunk"]
    assert ["end" if row[0] == "end" else row[2] + strip_tags(row[3]) for row in found] == told
    assert html(before, after).count("\\ No newline at end of file") == told.count("end")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("a", "a", "Nothing changes."),
        ("", "", "Nothing changes."),
        (None, "", "The file will be empty."),
        (None, "a", "new file +1"),
        ("a\nb\n", "", "+0 \N{MINUS SIGN}2"),
    ],
)
def test_the_head_says_how_much(before: str | None, after: str, says: str) -> None:
    assert says in " ".join(strip_tags(html(before, after)).split())


HOSTILE = {
    "U+202E": "access_level = 'user\u202e \u2066// admin\u2069'",
    "U+200B": "pass\u200bword",
    "U+000D": "safe\revil",
    "U+001B": "\x1b[2Jevil",
    "U+2028": "one\u2028two",
    "30 blanks": "a" + " " * 30 + "b",
    "\u2423\u2423": "trailing  ",
    "U+FEFF": "\ufeffbegins",
}


@pytest.mark.parametrize("mark", HOSTILE)
@pytest.mark.parametrize("around", [("", ""), ("same words before it ", " and same words after it")])
def test_nothing_in_a_line_hides(mark: str, around: tuple[str, str]) -> None:
    """Whether the line is new, or differs in this alone, in its midst or at its end; never by breaking the line."""
    if around[1] and mark == "\u2423\u2423":
        around = (around[0], "")
    line = HOSTILE[mark].join(around)
    for before in (None, "x\n".join(around), ""):
        page = html(before, line + "\n")
        assert f">{mark}<" in page
        assert not any(hidden in page for hidden in "\u202e\u2066\u2069\u200b\r\x1b\u2028\ufeff")
        assert page.count('<tr class="add">') == 1, "one line is one line"


def test_a_path_and_a_text_are_only_text() -> None:
    page = html("<script>a</script>\n", "<script>b</script>\n", "<img src=x>\u202efdp.exe")
    assert "<script" not in page
    assert "<img" not in page
    assert ">U+202E<" in page


def test_words_that_differ_are_marked() -> None:
    """In whole words; a line that is wholly another has no marks, as it would be all mark."""
    page = html("return bank.upload(file)\n", "return bank.upload(file, key=key)\n")
    assert "return bank.upload(file<mark>, key=key</mark>)" in page
    assert "return bank.upload(file)" in page
    assert "<mark>" not in html("continue\n", "if found:\n")
    assert "total <mark>12</mark> items" in html("total 17 items\n", "total 12 items\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x\n" * LINES_MOST, "x\n" * (LINES_MOST - 1) + "y\n"),
        ("x\ny\n" * (LINES_MOST // 2), "y\nx\n" * (LINES_MOST // 2)),
        ("".join(f"{n % 100}\n" for n in range(LINES_MOST)), "".join(f"{n % 101}\n" for n in range(LINES_MOST))),
        ("".join(f"{n}\n" for n in range(LINES_MOST)), "".join(f"{n}\n" for n in reversed(range(LINES_MOST)))),
        ("x\ny\n" * 700, "y\nz\nx\nq\n" * 350),
    ],
    ids=["the same line", "two lines", "a hundred lines", "backwards", "two lines in another rhythm"],
)
def test_no_text_is_slow_to_compare(before: str, after: str) -> None:
    """Texts come from agents: the worst of the size that is shown take seconds, not minutes, and stay whole."""
    began = time.monotonic()
    shown = of(before, after)
    assert time.monotonic() - began < 10
    assert made_again(shown, before, ("same", "add")) == after


def test_two_small_changes_in_a_long_text_are_small() -> None:
    """However alike its lines are."""
    lines = [f"line {n}" if n % 3 else "" for n in range(9_000)]
    before = "\n".join(lines)
    shown = of(before, before.replace("line 10\n", "line ten\n").replace("line 8000\n", ""))
    assert (shown.added, shown.removed) == (1, 2)
