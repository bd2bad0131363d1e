"""How the demo model is asked to remember, to say what it knows, and to forget."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.demo.test_rules import Item, ask, calls


def result(name: str, arguments: str, output: str) -> list[Item]:
    return [
        {"type": "function_call", "call_id": name, "name": name, "arguments": arguments},
        {"type": "function_call_output", "call_id": name, "output": output},
    ]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("Remember that I prefer short answers.", "I prefer short answers."),
        ("please remember: my bike is red, and fast", "My bike is red, and fast"),
        (
            "Keep in mind that the office closes at five and opens at nine",
            "The office closes at five and opens at nine",
        ),
    ],
)
def test_it_remembers_what_it_is_told_to_in_one_piece(request_: str, text: str) -> None:
    assert calls(ask(request_)) == [("memory_save", {"text": text, "pinned": False})]


def test_it_pins_what_it_is_always_to_remember() -> None:
    pinned = {"text": "I prefer tea", "pinned": True}
    assert calls(ask("always remember that I prefer tea")) == [("memory_save", pinned)]


@pytest.mark.parametrize(
    ("request_", "arguments"),
    [
        ("What do you know of me?", {}),
        ("what do you know about me", {}),
        ("What do you remember?", {}),
        ("show my memory", {}),
        ("What do you remember about my bike?", {"words": "my bike"}),
    ],
)
def test_it_says_what_it_knows(request_: str, arguments: dict[str, Any]) -> None:
    assert calls(ask(request_)) == [("memory_search", arguments)]


def test_it_quotes_what_it_finds() -> None:
    answer = ask("What do you know of me?", *result("memory_search", "{}", '7: "I prefer tea." (pinned)'))
    assert (calls(answer), '7: "I prefer tea." (pinned)' in answer.text) == ([], True)


def test_it_forgets_what_fits_best_once_it_found_it() -> None:
    said = "Forget that I prefer tea"
    assert calls(ask(said)) == [("memory_search", {"words": "I prefer tea"})]
    found = result("memory_search", '{"words": "I prefer tea"}', '7: "I prefer tea."\n9: "Tea is hot."')
    assert calls(ask(said, *found)) == [("memory_forget", {"id": 7})]
    gone = ask(said, *found, *result("memory_forget", '{"id": 7}', "Memory 7 is forgotten."))
    assert (calls(gone), "Memory 7 is forgotten." in gone.text) == ([], True)


def test_it_says_so_if_there_is_nothing_to_forget() -> None:
    nothing = "Nothing is remembered about that. Other words may find more."
    answer = ask("forget that I prefer tea", *result("memory_search", '{"words": "I prefer tea"}', nothing))
    assert (calls(answer), answer.text.endswith(nothing)) == ([], True)


@pytest.mark.parametrize(
    "request_",
    ["Forget me", "forget it", "Forget about it!", "forget that.", "Forget everything", "forget all you know of me"],
)
def test_what_names_no_memory_forgets_none(request_: str) -> None:
    assert calls(ask(request_)) == []


def test_it_forgets_by_number() -> None:
    assert calls(ask("forget memory 12")) == [("memory_forget", {"id": 12})]
