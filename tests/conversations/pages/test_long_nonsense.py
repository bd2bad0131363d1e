"""Nothing that a person or a model writes keeps a process busy: everybody else served by it would have to wait."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from agents.providers.common import reasoning
from agents.providers.json import answer
from agents.providers.json.stream import Held
from conversations.display.rendering import markdown
from conversations.pages.timeline.growing import GrowingText
from conversations.prompts.titles import title_from
from tests.budget import share

SECONDS_MOST = 3.0
"""Far more than any of this takes, and far less than quadratic time would take."""
LENGTH = 100_000


def streamed(text: str) -> None:
    """An answer that arrives in many small pieces."""
    held, thinking = Held(), reasoning.Thoughts()
    for start in range(0, len(text), 2):
        held.feed(thinking.feed(text[start : start + 2]))


def grown(text: str) -> None:
    """Streaming Markdown of which much has arrived at once."""
    GrowingText().grow(text)


CASES: dict[Callable[[str], object], tuple[str, ...]] = {
    title_from: ("[", "![", "](", "`", "```", "`a ", "**a **a ", "~~a ", "please ", "> ", "\n", "1. ", ". "),
    markdown.render: ("![", "[", "[[", "[a](", '[{"'),
    grown: ("![", "[", "[[", "[a](", '[{"'),
    answer.read: ("~", "`", "~~~ ", "``` ", "```json\n{}\n", "```{", "<a>\n", "\n{"),
    streamed: ("~", "`", "``` ", "~~~\t", "<a ", "\n", " ", "[", "<think>", "```x\n"),
}


@pytest.mark.parametrize(
    ("reads", "unit"),
    [pytest.param(reads, unit, id=f"{reads.__name__} {unit!r}") for reads, units in CASES.items() for unit in units],
)
@pytest.mark.parametrize("around", share(["{}", "x {} x", "```\n{}x"], of=3))
def test_it_is_read_at_once(reads: Callable[[str], object], unit: str, around: str) -> None:
    text = around.format(unit * (LENGTH // len(unit)))
    begun = time.thread_time()
    reads(text)
    assert time.thread_time() - begun < SECONDS_MOST


def test_so_many_brackets_are_no_links() -> None:
    """There each would have to be tried. As many links as anybody reads remain links."""
    link = "[a](https://b.example) "
    assert str(markdown.render(link * 500)).count("<a ") == 500
    assert link.strip() in markdown.render(link * (markdown.BRACKETS_MOST + 1))
