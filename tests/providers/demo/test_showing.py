"""What the demo model shows of itself: fixed texts that use what a page can show, and are shown whole."""

from __future__ import annotations

import ast
import re

import pytest

from agents.providers.demo.guide import INTRODUCTION
from agents.providers.demo.showing import HONEST, SHOWN, Shown
from conversations.display.rendering.markdown import render
from conversations.display.rendering.place import Place
from tests.providers.demo.test_rules import ask, offered, said, user

PLACE = Place("1", "/prompts/1/diagrams/", "/c/1/images/")


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.example)
def test_it_is_shown_in_whatever_words_and_says_what_it_is(shown: Shown) -> None:
    for words in (shown.example, f"Please {shown.example.upper()}.", f"{shown.example} please!"):
        reply = ask(words)
        assert not reply.calls
        assert reply.text == f"{INTRODUCTION} {shown.text}\n\n{HONEST}"


def test_it_introduces_itself_only_at_first() -> None:
    assert ask(user("Hi"), said("I am."), user("show some code")).text.startswith(SHOWN[2].text)


def test_what_only_sounds_like_it_is_something_else() -> None:
    assert ask("draw the chart: Jan 3, Feb 5").calls
    assert "did not understand" in ask("show some code that opens the door").text


def test_a_form_is_filled_in_all_the_same() -> None:
    """Where an answer must have a form, a text is no answer."""
    assert [call.name for call in ask("draw the loop", tools=offered("final_answer")).calls] == ["final_answer"]


@pytest.mark.parametrize(
    ("example", "parts"),
    [
        ("draw the loop", ['class="diagram"', 'class="footnote']),
        ("show the formula", ["<math", "<mfrac>", '<table class="grid">']),
        (
            "show some code",
            [
                "Python</span>",
                "SQL</span>",
                "Diff</span>",
                "Bash</span>",
                'class="c-key"',
                'class="c-add"',
                'class="tick"',
            ],
        ),
    ],
)
def test_a_page_shows_all_of_it(example: str, parts: list[str]) -> None:
    """As pictures, formulas, colours and boxes, and no source is left of them."""
    html = str(render(ask(example).text, PLACE))
    for part in parts:
        assert part in html, part
    plain = re.sub(r"<(pre|details|math)\b.*?</\1>", "", html, flags=re.DOTALL)
    for left in ("```", "$$", "- [", "[^1]", "|---"):
        assert left not in plain


def test_its_python_runs() -> None:
    """It is shown as an example."""
    code = re.findall("```python\n(.*?)```", SHOWN[2].text, re.DOTALL)[0]
    known: dict[str, object] = {}
    exec(compile(ast.parse(code), "shown", "exec"), known)
    asked = "overdue({'a': date(2025, 1, 3), 'b': date(2025, 1, 1), 'c': date(2025, 1, 4)}, date(2025, 1, 4))"
    assert eval(asked, known) == ["b", "a"]
