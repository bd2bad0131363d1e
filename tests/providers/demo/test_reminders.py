"""The demo model in a turn that a trigger started, and how it is asked for triggers."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.agent.projection import NOBODY_SPOKE, TRIGGERED
from tests.providers.demo.test_rules import Item, ask, calls, said, user


def line(says: str, role: str = "developer") -> Item:
    return {"role": role, "content": TRIGGERED.format(says=says)}


LOGS = '"look at the \\"logs\\""'
CALL: list[Item] = [
    {"type": "function_call", "call_id": "1", "name": "files_list", "arguments": '{"path": "."}'},
    {"type": "function_call_output", "call_id": "1", "output": "a.txt"},
]


@pytest.mark.parametrize(
    "items",
    [
        ["Hello.", said("Hello!"), line(LOGS)],
        [
            {"role": "system", "content": "Be kind.\n\n" + TRIGGERED.format(says=LOGS)},
            "Hello.",
            said("Hi!"),
        ],
        ["Hello.", said("Hello!"), line(LOGS, "user")],
        [line('"an old one"'), said("Done."), line(LOGS)],
    ],
)
def test_it_repeats_what_it_reminds_of(items: list[Any]) -> None:
    assert ask(*items).text.endswith('Reminder: look at the "logs"')


def test_it_does_what_it_can_do() -> None:
    """What was done before the turn does not count, what was done in it does."""
    earlier: list[Item | str] = ["List the files.", *CALL, said("These are the files.")]
    assert calls(ask(*earlier, line('"list the files"'))) == [("files_list", {"path": "."})]
    done = ask(*earlier, said("I will list the files, as you asked."), *CALL, line('"list the files"'))
    assert (calls(done), "a.txt" in done.text) == ([], True)


def test_an_earlier_reminder_is_no_request() -> None:
    """Neither for a person's message, nor for a turn that nobody began."""
    earlier = [line('"list the files"'), said("Done.")]
    assert calls(ask(*earlier, "Hello.")) == []
    assert ask(*earlier, {"role": "developer", "content": NOBODY_SPOKE}).text.startswith("Nobody asked")
    assert not calls(ask(user(TRIGGERED.format(says='"list the files"')), said("Done."), "Hello."))


@pytest.mark.parametrize(
    ("request_", "arguments"),
    [
        ("Remind me in one minute to look at the logs", {"text": "look at the logs", "in_minutes": 1}),
        ("please remind me in 2 hours to call and write", {"text": "call and write", "in_minutes": 120}),
        ("remind me to drink water in 10 minutes", {"text": "drink water", "in_minutes": 10}),
        ("every weekday at 9:30: list the files", {"text": "list the files", "cron": "30 9 * * 1-5"}),
        (
            "remind me every Monday at 17:00 in Asia/Tokyo to send the report",
            {"text": "send the report", "cron": "0 17 * * 1", "zone": "Asia/Tokyo"},
        ),
        ("every 30 minutes: list the files", {"text": "list the files", "every_minutes": 30}),
    ],
)
def test_triggers_in_plain_words(request_: str, arguments: dict[str, Any]) -> None:
    assert calls(ask(request_)) == [("trigger_create", arguments)]


def test_triggers_are_listed_and_deleted() -> None:
    assert calls(ask("list my triggers")) == [("trigger_list", {})]
    assert calls(ask("delete trigger 3")) == [("trigger_delete", {"id": 3})]
    assert calls(ask("every day at 25:00: list the files")) == []
