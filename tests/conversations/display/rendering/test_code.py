"""Code in colours: what is shown is the code, whatever its lexer makes of it, and in bounded time."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.outputs.change import Change
from conversations.display.diff import diff
from conversations.display.faithful import visible
from conversations.display.rendering.code import COLOURED_MOST, LANGUAGES, LINE_MOST, highlight, runs_of_lines
from conversations.display.rendering.faithful_code import command_lines, visible_code
from conversations.display.rendering.markdown import render
from conversations.display.rendering.message import message_html
from tests.budget import share

SAMPLES = {
    "python": ("def f(x):\n    return 'a'  # why\n", "def"),
    "javascript": ("const f = (x) => `a${x}`; // why\n", "const"),
    "typescript": ("interface A { b: string }\n", "interface"),
    "java": ("public class A { int b = 1; }\n", "public"),
    "c": ("#include <stdio.h>\nint main(void) { return 0; }\n", "return"),
    "cpp": ("template <typename T> class A {};\n", "template"),
    "csharp": ("using System; class A { }\n", "using"),
    "go": ("package main\nfunc main() {}\n", "func"),
    "rust": ("fn main() { let x = 1; }\n", "fn"),
    "ruby": ("def f(x) = x + 1\n", "def"),
    "php": ("<?php function f() { return 1; }\n", "function"),
    "swift": ("let x: Int = 1\n", "let"),
    "kotlin": ("fun main() { val x = 1 }\n", "fun"),
    "bash": ('for f in *; do echo "$f"; done # all\n', "for"),
    "sql": ("SELECT a FROM b WHERE c = 'd';\n", "SELECT"),
    "html": ('<p class="a">b</p>\n', "p"),
    "css": ("a:hover { color: #fff; }\n", "color"),
    "json": ('{"a": [1, true]}\n', "true"),
    "yaml": ("a: 1\nb: [c, d] # e\n", "a"),
    "toml": ("[a]\nb = 1\n", "[a]"),
    "diff": ("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", "-x"),
    "docker": ("FROM python:3.11\nRUN ls\n", "FROM"),
    "xml": ("<a b='c'/>\n", "<a"),
}
LEXERS = sorted(LANGUAGES)


def shown(html: str) -> str:
    """What a person sees of HTML."""
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize("language", SAMPLES)
def test_code_has_colours_in_both_themes(language: str) -> None:
    text, word = SAMPLES[language]
    html = render(f"```{language}\n{text}```")
    assert shown(html.partition('<pre tabindex="0">')[2]).strip() == text.strip()
    assert re.search(rf'<span class="c-(key|name|del)">{re.escape(word).replace("<", "&lt;")}', html), html


@given(st.text(max_size=300), st.sampled_from(LEXERS))
def test_code_is_shown_as_it_is(text: str, language: str) -> None:
    """No character is lost, added or moved, and nothing of it is markup."""
    assert shown(highlight(text, language)) == text
    assert ["".join(part for _, part in line) for line in runs_of_lines(text, language)] == text.split("\n")
    assert set(re.findall(r"<[^>]*>", highlight(text, language))) <= {
        "</span>", *(f'<span class="c-{each}">' for each in ("add", "com", "del", "key", "name", "num", "str"))
    }  # fmt: skip


HIDING = st.text(st.sampled_from("ab \t\n#'\"$\u202e\u200b\u0301\x00;<&\\/*{}"), max_size=200)


@given(HIDING, st.sampled_from(["python", "bash", "javascript", "sql", "html", "a/b.yml", "nothing"]))
def test_colours_hide_nothing(text: str, language: str) -> None:
    """What a person decides about is shown as faithfully in colours as without."""
    assert shown(visible_code(text, language)) == shown(visible(text))


@given(HIDING)
def test_commands_are_as_faithful_in_colours(command: str) -> None:
    lines = [shown(line) for line in command_lines(command)]
    for line in filter(None, command.split("\n")):
        assert shown(visible(line)) in lines or len(line) > 24


def test_a_comment_in_a_command_is_no_way_to_hide() -> None:
    """Blanks in it are counted, and a word of it stays in one piece."""
    (line,) = command_lines("ls #" + " " * 30 + "--all; rm -rf /  ")
    assert "30 blanks" in line
    assert '<span class="w"><span class="c-com">--all;</span></span>' in line
    assert "\u2423\u2423" in line


def test_a_word_of_a_command_has_one_colour_or_none() -> None:
    (line,) = command_lines("for month in 2025 2025-09 --wait=60")
    assert '<span class="w"><span class="c-num">2025</span></span>' in line
    assert '<span class="w">2025-09</span>' in line
    assert '<span class="w">--wait=60</span>' in line


@given(HIDING, HIDING)
def test_a_diff_is_as_faithful_in_colours(before: str, after: str) -> None:
    coloured, plain = (diff(Change(path=path, before=before, after=after)) for path in ("a.py", "a"))
    rows = [[shown(row.html) for hunk in each.hunks for row in hunk.rows] for each in (coloured, plain)]
    assert rows[0] == rows[1]


def test_a_diff_has_the_colours_of_its_whole_file() -> None:
    """A line within a text of several lines is a text, although the diff does not show where that begins."""
    text = 'a = """\n' + "\n".join(f"this is line {n}" for n in range(20)) + '\n"""\n'
    changed = diff(Change(path="a.py", before=text, after=text.replace("line 15", "line fifteen")))
    rows = {row.kind: row.html for hunk in changed.hunks for row in hunk.rows}
    assert rows["same"].startswith('<span class="c-str">')
    assert '<mark><span class="c-str">fifteen</span></mark>' in rows["add"]


@pytest.mark.parametrize(
    ("info", "label"),
    [("py", "Python"), ("js title=x", "JavaScript"), ("app.py", "app.py"), ("python:src/app.py", "src/app.py"),
     ("", "Code"), ("text", "Text"), ("klingon", "klingon"), ("<b>", "&lt;b&gt;"), ("sh", "Bash")],
)  # fmt: skip
def test_code_is_labelled_with_its_language_or_file(info: str, label: str) -> None:
    assert f'<span class="grow">{label}</span>' in render(f"```{info}\nx = 1\n```")


def test_code_that_nobody_reads_has_no_colours() -> None:
    assert 'class="c-' in highlight("x = 1\n" * (COLOURED_MOST // 6), "python")
    assert 'class="c-' not in highlight("x = 1\n" * COLOURED_MOST, "python")
    assert 'class="c-' not in highlight("x = 1;" * LINE_MOST, "python")


@pytest.mark.parametrize("language", share(list(LEXERS), of=4))
def test_no_language_takes_long(language: str) -> None:
    """The signs that took one of the lexers longest. `python -m bench.colours` tries more, and more of them."""
    for unit, long in (("\t", False), ("(", True), ("a.", True), ("<a ", True)):
        line = (unit * LINE_MOST)[: LINE_MOST - 1] if long else unit
        began = time.thread_time()
        highlight(f"{line}\n" * (COLOURED_MOST // 4 // (len(line) + 1)), language)
        assert time.thread_time() - began < 1


def test_fences_of_a_message_are_code() -> None:
    """Nothing else of a message is Markdown: it stands as it was typed."""
    message = "Look **here**:\n```py\nprint(1)\n\n```\n\nand\n~~~\n<b>\n~~~\n```open\nx"
    said = message_html(message)
    typed = re.findall(r'<p class="typed" dir="auto">(.*?)</p>', said, re.DOTALL)
    assert typed == ["Look **here**:", "\nand", "```open\nx"]
    assert ">Python</span>" in said
    assert shown(said).startswith("Look **here**:Pythonprint(1)\n\n\nand")
    assert "&lt;b&gt;" in said
    assert message_html("no <fence>\n") == '<p class="typed" dir="auto">no &lt;fence&gt;\n</p>'
    assert message_html(" \n") == ""
    assert "[U+202E]" in message_html("```\n\u202e\n```")


def test_a_message_of_fences_is_read_at_once() -> None:
    for unit in ("```x\n", "~~~\na\n", "```\n", " ```` \n"):
        began = time.thread_time()
        message_html(unit * 20_000)
        assert time.thread_time() - began < 3


SURFACES = ("bg", "bg-sunk", "bg-hover", "add-bg", "add-mark", "del-bg", "del-mark")
"""On which code stands: pages, boxes, messages, and the lines and words of diffs."""


@pytest.mark.parametrize("colour", ["code-key", "code-name", "code-num", "code-str", "ok", "bad"])
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_colour_can_be_read_wherever_code_stands(colour: str, theme: int) -> None:
    """Comments are left out: where they would be too pale, they have the colour of text."""
    tokens = (settings.BASE_DIR / "conversations/static/conversations/tokens.css").read_text()
    pairs = {name: both for name, *both in re.findall(r"--([\w-]+):\s*light-dark\((#\w{6}), (#\w{6})\)", tokens)}

    def luminance(name: str) -> float:
        parts = (int(pairs[name][theme][at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]  # WCAG 2.2, relative luminance

    for surface in SURFACES:
        darker, lighter = sorted((luminance(colour), luminance(surface)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, surface
