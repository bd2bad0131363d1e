"""The title that a conversation gets from its first message."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.prompts.titles import LONG, title_from


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("List the files.\nAll of them.", "List the files."),
        ("Hi there, could you please fix the **build** on `main`? It fails.", "Fix the build on main?"),
        ("Hello.\n\nPlease look at [the docs](https://x.y/z) and tell me more", "Look at the docs and tell me more"),
        ("# Plan for *July*\n\nWrite it.", "Plan for *July*"),
        ("```py\nprint(1)\n```\nWhat does this do?", "What does this do?"),
        ("```py\nprint(1)\n```", "print(1)"),
        ("```\nprint(1)", "print(1)"),
        ("```py\n" + "print(1)\n" * 500 + "```\nWhat does this do?", "What does this do?"),
        ("x" * 700 + "\nWhat is that?", "x" * LONG + "\u2026"),
        ("- [ ] buy   milk", "buy milk"),
        ("Summarize https://www.example.com/a/b/c?x=1 in a line", "Summarize example.com/\u2026 in a line"),
        ("Write e.g. a poem. Thanks!", "Write e.g. a poem."),
        ("Version 1.2.3 is broken. Why?", "Version 1.2.3 is broken."),
        ("Hi-fi speakers compared", "Hi-fi speakers compared"),
        ("History of Rome", "History of Rome"),
        ("snake_case and __init__ stay", "snake_case and __init__ stay"),
        ("hello!", "hello!"),
        ("***", "***"),
        ("\u4f60\u597d", "\u4f60\u597d"),
        ("word " * 40, "word word word word word word word word word word word word\u2026"),
        ("x" * 300, "x" * LONG + "\u2026"),
    ],
)
def test_it_says_what_the_message_is_about(said: str, title: str) -> None:
    assert title_from(said) == title


@example("a\t:")
@given(st.text(alphabet=st.sampled_from("aZ .!?:\n\r\t`~*_#>-[]()/\\hi pleasehttp://x\u202e\u00e9")) | st.text())
def test_it_is_one_short_line_and_never_empty(said: str) -> None:
    title = title_from(said)
    assert title.strip() == title
    assert 0 < len(title) <= LONG + 1
    assert len(title.splitlines()) == 1
