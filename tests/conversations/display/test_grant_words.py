"""Grants in words, where the form does not lead."""

from __future__ import annotations

from agents.engine.grants.conditions import of_input
from agents.engine.grants.grant import Grant, Scope
from agents.engine.ledger import JSON
from conversations.display.grant_words import grant_words


def granted(tool: str, input: dict[str, JSON]) -> Grant:
    return Grant(tool, "", Scope.FIELDS, conditions=tuple(of_input(input)), conversation=1)


def test_more_conditions_than_a_sentence_can_say_are_listed() -> None:
    few = granted("note.write", {"path": "a", "text": "b", "times": 2})
    assert grant_words(few)[0] == "note.write, without asking you, if path is “a”, text is “b” and times is 2."
    many = granted("note.write", {"to": ["a", "b"], "text": "c", "times": 2})
    assert grant_words(many) == [
        "note.write, without asking you, if all of this holds:",
        "• item 1 of to is “a”",
        "• item 2 of to is “b”",
        "• text is “c”",
        "• times is 2",
        "In this conversation only, any number of times, until you revoke it.",
    ]


def test_arguments_of_a_program_are_counted_as_on_its_card() -> None:
    said = grant_words(granted("shell.program", {"argv": ["ls", "-la"]}))[0]
    assert said == "Run a program, without asking you, if the program is “ls” and argument 1 is “-la”."


def test_others_read_who_gave_it() -> None:
    said = grant_words(Grant("note.write", "", Scope.EXACT), "Ann")
    assert said == [
        "note.write, without asking Ann, if it is exactly this call.",
        "In all conversations of Ann, any number of times, until Ann revokes it.",
    ]
