"""The demo model in a refactoring, also without the workflow around it: what it plans, and what it cannot do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.providers.demo.reply import Reply
from agents.providers.demo.rules import answer

TOOLS = ("files_read", "files_write", "files_search")
SOURCE = "WAIT = 1\n\n\ndef line(text):\n    return text.center(72) + text.ljust(72)"
PLAN = "Plan a refactoring of `shop.py`, please."
DO = "Carry out this plan for a refactoring of `shop.py`.\n\n1. {}\n\nBe careful."


def ask(said: str, *done: tuple[str, dict[str, Any], str]) -> Reply:
    """What the demo says next, after these calls and their results."""
    items: list[dict[str, Any]] = [{"role": "user", "content": said}]
    for number, (name, arguments, output) in enumerate(done):
        call = {"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": json.dumps(arguments)}
        items += [call, {"type": "function_call_output", "call_id": f"c{number}", "output": output}]
    offered = [{"type": "function", "name": name, "parameters": {}} for name in TOOLS]
    return answer({"model": "demo", "input": items, "tools": offered})


def read(text: str, path: str = "shop.py") -> tuple[str, dict[str, Any], str]:
    return "files_read", {"path": path}, text


def test_in_a_chat_the_plan_is_in_words() -> None:
    (call,) = ask(PLAN).calls
    assert (call.name, call.arguments["path"]) == ("files_read", "shop.py")
    told = ask(PLAN, read(SOURCE))
    assert told.calls == ()
    assert "1. In `shop.py`, give the value `72` the name `WIDTH`, and define it once at the top." in told.text


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("Error (not_found): 'shop.py' does not exist.", "I could not read `shop.py`: 'shop.py' does not exist."),
        (f"{SOURCE}\n[Lines 1 to 5 of 900; read on with offset 6.]", "`shop.py` is too long for me, or is not text."),
        ("x = 1", "I found nothing to do in `shop.py`."),
    ],
)
def test_what_it_cannot_plan_it_says(result: str, why: str) -> None:
    assert why in ask(PLAN, read(result)).text


def test_blanks_at_the_ends_of_lines_are_better_than_nothing() -> None:
    step = "In `shop.py`, remove blanks at the ends of lines."
    assert f"1. {step}" in ask(PLAN, read("x = 1  \ny = 2")).text
    (call,) = ask(DO.format(step), read("x = 1  \ny = 2")).calls
    assert call.arguments == {"path": "shop.py", "content": "x = 1\ny = 2\n"}


@pytest.mark.parametrize("step", ["Make it better.", "In `shop.py`, delete everything.", "Rename a to b."])
def test_steps_that_it_does_not_know_change_nothing(step: str) -> None:
    told = ask(DO.format(step))
    assert told.calls == ()
    assert "I do not understand the steps of this plan, so I changed nothing. I know three small changes" in told.text


def test_a_file_that_has_changed_since_is_left_alone() -> None:
    step = "In `shop.py`, give the value `72` the name `WIDTH`, and define it once at the top."
    told = ask(DO.format(step), read("x = 1"))
    assert told.calls == ()
    assert "I changed nothing in `shop.py`: it is not as it was when I planned." in told.text
