"""The secrets of a run: hidden within it, in whatever thread, and nowhere else; the engine's own words stay."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.engine.ledger import JSON
from agents.engine.secrets import (
    HIDDEN,
    RunSecrets,
    hide,
    hide_in,
    hide_in_payload,
    hide_in_step,
    partial_secret_length,
)
from agents.engine.threads import in_thread


def hidden(text: str, *values: str) -> str:
    with RunSecrets(dict(zip("abcdef", values, strict=False))).hidden():
        return hide(text)


def test_they_are_hidden_within_the_run_alone() -> None:
    secrets = RunSecrets()
    with secrets.hidden():
        assert hide("hunter2!") == "hunter2!"
        secrets.add({"password": "hunter2!"})
        assert hide("It is hunter2!.") == f"It is {HIDDEN}."
        with RunSecrets({"pin": "0042"}).hidden():
            assert hide("hunter2! 0042") == f"{HIDDEN} {HIDDEN}"
        assert hide("0042") == "0042"
        assert partial_secret_length("see hunt") == 4
    assert hide("hunter2!") == "hunter2!"
    assert partial_secret_length("see hunt") == 0


async def test_they_are_hidden_in_the_tasks_and_threads_of_the_run() -> None:
    async def one(value: str) -> list[str]:
        with RunSecrets({"password": value}).hidden():
            await asyncio.sleep(0)
            task = asyncio.ensure_future(in_thread(hide, "first1 second2"))
            return [hide("first1 second2"), await task]

    first, second = await asyncio.gather(one("first1"), one("second2"))
    assert first == [f"{HIDDEN} second2"] * 2
    assert second == [f"first1 {HIDDEN}"] * 2
    assert hide("first1 second2") == "first1 second2"


@pytest.mark.parametrize("value", ["secret", "[secret]", "cret", "a[sec", "ret]"])
def test_what_is_hidden_is_hidden_once(value: str) -> None:
    """Otherwise what runs again would not be what was recorded."""
    once = hidden(f"It is {value}, a{value}", value)
    assert hidden(once, value) == once
    assert once.count(HIDDEN) == 2


def test_short_ones_are_not_hidden() -> None:
    assert (hidden("a 123 b", "123"), hidden("a 1234 b", "1234")) == ("a 123 b", f"a {HIDDEN} b")


def test_the_words_of_the_engine_stay() -> None:
    """A password may be a word, or a number that stands in a time or a digest."""
    step: dict[str, Any] = {
        "policy": "human",
        "payload": {"ask": "approve", "expires_at": "2026-11-25", "digest": "20261125", "reason": "approve 2026"},
    }
    with RunSecrets({"password": "approve", "pin": "2026", "other": "policy"}).hidden():
        assert hide_in_step("runtime", "action_call", step) == {
            "policy": "human",
            "payload": {**step["payload"], "reason": f"{HIDDEN} {HIDDEN}"},
        }
        value = {"output": "2026-11-25T12:00:00+00:00"}
        assert hide_in_step("runtime", "action_result", value) == value
        assert hide_in_step("tool:x", "action_result", value) == {"output": f"{HIDDEN}-11-25T12:00:00+00:00"}
        end = {"state": "approve", "stop_reason": "approve", "output": "approve"}
        assert hide_in_step("agent", "action_result", end) == end | {"output": HIDDEN}
        assert hide_in_step("tool:x", "widget", {"policy": {"policy": "2026"}}) == {"policy": {HIDDEN: HIDDEN}}
        assert hide_in_payload("policy:x", "sleep", {"until": "2026-11-25"}) == {"until": "2026-11-25"}
        assert hide_in_payload("model", "sleep", {"until": "2026-11-25"}) == {"until": f"{HIDDEN}-11-25"}


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"$secret": "password"}, {"$secret": "password"}),
        ({"$secret": "hunter2!"}, {"$secret": HIDDEN}),
        ({"$secret": "password", "more": "hunter2!"}, {"$secret": "password", "more": HIDDEN}),
        ([{"hunter2!": {"password": ["hunter2!"]}}], [{HIDDEN: {"password": [HIDDEN]}}]),
    ],
)
def test_references_and_the_names_of_fields_stay(value: JSON, left: JSON) -> None:
    with RunSecrets({"password": "hunter2!"}).hidden():
        assert hide_in(value, keys=True) == left
        assert hide_in({"hunter2!": 1}) == {"hunter2!": 1}
