"""Streaming Markdown: safe at every moment, in finished pieces that never change, at a constant cost."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.display.rendering import markdown, sanitising
from conversations.display.rendering.place import Place
from conversations.pages.timeline import growing
from conversations.pages.timeline.growing import GrowingText
from tests.conversations.pages.test_hostile import HOSTILE

FRAGMENTS = [
    "A paragraph, **bold** and `code`.", "# A heading", "- one\n- two\n\n  more of two", "1. one\n2. two", "> said",
    "```py\nprint(1)\n```", "```\n1\n2\n3\n4\n5\n6\n```", "~~~\nno\nend\nof\nit\n", "| a | b |\n|---|:-:|\n| 1 | 2 |",
    "Title\n===", "* * *", "    indented", "[a]: https://a.example 'b'", "See [a].", "[half](https://ex", "**half",
    "`half", "&am", "&lt;", "\\", "\r\n", "\u202e", "\ud800", "<b>", "</div>", "</code></pre>", "- \n-", "|", "``` ",
    "\n", "\n\n", " ", "\t", "- [ ] to do\n- [x] done", "Term\n: what it is", "said[^1]", "[^1]: A note.", "$x^2$",
    "$5", "$", "$$\n\\frac{1}{2}\n$$", "$$", "\\(y", "\\)", "\\[\n- z\n\\]",
    "```mermaid\ngraph TD\nA --> B\n\nC\nD\n```", "![a](b.png)", "https://bare.example/x",
]  # fmt: skip
MARKDOWN = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=12
).flatmap(lambda parts: st.sampled_from(["", "\n", "\n\n"]).map(lambda between: between.join(parts)))
ALLOWED = sanitising.TAGS
ATTRIBUTES = {"class", "rel"}.union(*sanitising.ATTRIBUTES.values())
PLACE = Place("5", "/prompts/5/diagrams/", "/c/3/images/")
CODE_LINES = 3


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update is shown at once, and code is soon long."""
    monkeypatch.setattr(growing, "PATIENCE", 10**9)
    monkeypatch.setattr(growing, "CODE_LINES", CODE_LINES)


def tags(html: str) -> list[str]:
    return re.findall(r"<[^>]*>", html)


def assert_inert(html: str) -> None:
    """Only our own tags, with harmless attributes, all closed."""
    open_tags: list[str] = []
    for tag in tags(html):
        found = re.fullmatch(r"<(/?)([a-z0-9]+)((?: [a-z-]+=\"[^\"]*\")*)>", tag)
        assert found, tag
        closing, name, attributes = found.groups()
        assert name in ALLOWED
        assert set(re.findall(r' ([a-z-]+)="[^"]*"', attributes)) <= ATTRIBUTES, tag
        assert not re.search(r'href="(?!https?:|mailto:|[^:"]*")', attributes), tag
        assert not re.search(r'src="(?!/prompts/5/diagrams/|/c/3/images/)', attributes), tag
        if closing:
            assert open_tags.pop() == name
        elif name not in ("br", "hr", "img"):
            open_tags.append(name)
    assert not open_tags
    assert "\u202e" not in html


@given(MARKDOWN, st.integers(1, 7))
def test_every_prefix_is_inert_and_what_is_finished_stays(text: str, step: int) -> None:
    """Whatever a model writes, however it is split: sanitised, and a finished piece never changes (T-51)."""
    text_so_far = GrowingText(PLACE)
    before: list[str] = []
    for end in [*range(0, len(text), step), len(text)]:
        text_so_far.grow(text[:end])
        finished = [str(piece.html) for piece in text_so_far.finished]
        assert finished[: len(before)] == before
        before = finished
        for piece in text_so_far.pieces:
            assert_inert(piece.html)


@given(MARKDOWN)
@example("~~~~~~\r~~~\n\n\n\n")
@example("~~~\n\n\r\n\r\n")
def test_the_same_pieces_however_it_grew(text: str) -> None:
    """A page that was loaded late has the pieces that were sent to the others, with the same numbers."""
    slow, at_once = GrowingText(PLACE), GrowingText(PLACE)
    for end in range(len(text) + 1):
        slow.grow(text[:end])
    at_once.grow(text)
    assert [piece.html for piece in slow.pieces] == [piece.html for piece in at_once.pieces]


def test_the_pieces_are_the_whole() -> None:
    """Together they are what the recorded text will show."""
    text = "\n\n".join(
        part for part in FRAGMENTS if "half" not in part and "no\n" not in part and part.isascii() and part.strip()
    )
    text_so_far = GrowingText(PLACE)
    for end in range(0, len(text), 3):
        text_so_far.grow(text[:end])
    text_so_far.grow(text + "\n\nEnd")
    whole = markdown.render(text + "\n\nEnd", PLACE)
    seams = re.sub(
        r'</code></pre></div><div class="code"><pre tabindex="0"><code>',
        "",
        "".join(p.html for p in text_so_far.pieces),
    )
    assert re.sub(r"\s+", "", seams) == re.sub(r"\s+", "", whole)


def test_long_code_is_cut_where_it_cannot_be_seen() -> None:
    lines = [f"line {n}" for n in range(3 * CODE_LINES + 2)]
    text = "Code:\n\n```py\n" + "\n".join(lines) + "\n```\n\nAfter.\n"
    text_so_far = GrowingText(PLACE)
    for end in range(0, len(text), 11):
        text_so_far.grow(text[:end])
    text_so_far.grow(text)
    code = text_so_far.pieces[1:-1]
    assert [piece.shape for piece in code] == ["cut", "more cut", "more cut", "more"]
    assert [piece.html.count("code-head") for piece in code] == [1, 0, 0, 0]
    shown = "".join(re.sub(r'<div class="code-head">.*?</div>|<[^>]*>', "", piece.html) for piece in code)
    assert shown.splitlines() == lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("some **bo", '<p dir="auto">some <strong>bo</strong></p>'),
        ("some **", '<p dir="auto">some</p>'),
        ("run `ls", '<p dir="auto">run <code>ls</code></p>'),
        ("see [the page](https://exa", '<p dir="auto">see the page</p>'),
        ("2 ** 3", '<p dir="auto">2 ** 3</p>'),
        ("A list:\n-", '<p dir="auto">A list:</p>'),
        (
            "- [x] some **bo",
            '<ul dir="auto">\n<li class="task"><span class="tick" role="img" aria-label="Done">\u2611</span>'
            " some <strong>bo</strong></li>\n</ul>",
        ),
        ("A table:\n\n| a | b |", '<p dir="auto">A table:</p>'),
    ],
)
def test_what_is_half_written_does_not_flicker(text: str, shown: str) -> None:
    text_so_far = GrowingText(PLACE)
    text_so_far.grow(text)
    assert "".join(piece.html.strip() for piece in text_so_far.pieces) == shown


def test_growing_costs_the_same_at_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the unfinished part is parsed, never the whole: a long answer costs what a short one does."""
    monkeypatch.undo()
    parse, parsed = markdown.parse, []

    def counted(text: str, known: dict[str, object]) -> object:
        parsed.append(len(text))
        return parse(text, known)

    monkeypatch.setattr(markdown, "parse", counted)
    code = "```\n" + "x = 1\n" * 4_000 + "```\n\n"
    text = "A paragraph of some length, with **bold** words in it, as they come.\n\n" * 1_000 + code
    text_so_far = GrowingText(PLACE)
    for end in range(0, len(text), 50):
        text_so_far.grow(text[:end])
    assert max(parsed) < 1_000
    long = "- an item of a list that has no end\n" * 1_000
    parsed.clear()
    text_so_far = GrowingText(PLACE)
    for end in range(0, len(long), 50):
        text_so_far.grow(long[:end])
    ticks = len(long) // 50
    assert sum(parsed) / ticks < 3_000
    assert all(a <= b for a, b in pairwise(parsed))


def test_a_fast_text_does_not_outrun_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a table, which is parsed less often, more than a thousand characters come with each update."""
    monkeypatch.setattr(growing, "PATIENCE", 1_000)
    prose, text = GrowingText(), "| a | b |\n|---|---|\n" + "| one | two |\n" * 200
    prose.grow(text)
    for number in range(60):
        text += f"\n\nParagraph {number}. " + "More words. " * 120
        prose.grow(text)
    assert len(prose.pieces) > 30
