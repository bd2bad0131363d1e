"""The transcript: what a client that reads along is sent, piece by piece, and the whole for one that does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conversations.context.transcript import Transcript
from conversations.push.growth import Delta

PIECES = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5)


def delta(path: str, offset: int, text: str) -> Delta:
    return Delta(1, path, (1, 1), offset, text, 1)


@given(st.lists(PIECES, max_size=5))
def test_the_pieces_are_the_whole(answers: list[list[str]]) -> None:
    transcript, sent = Transcript("", formed=False), ""
    for number, pieces in enumerate(answers, 1):
        for place, piece in enumerate(pieces):
            sent += transcript.delta(delta(str(number), len("".join(pieces[:place])), piece))
    assert sent == transcript.sent == transcript.text == "\n\n".join(map("".join, answers))


def test_an_answer_that_begins_anew_replaces_its_beginning_in_the_whole() -> None:
    transcript = Transcript("", formed=False)
    transcript.delta(delta("1", 0, "It br"))
    transcript.delta(delta("1", 0, "It holds."))
    assert transcript.text == "It holds."
    assert transcript.sent == "It br\n\nIt holds."


def test_what_sub_agents_and_commands_print_is_not_told() -> None:
    transcript = Transcript("", formed=False)
    assert not transcript.delta(delta("1/0", 0, "total 4"))
    assert not transcript.delta(delta("1/0/1", 0, "I am a sub-agent."))
    assert transcript.text == ""


def test_of_a_formed_answer_nothing_else_is_told() -> None:
    transcript = Transcript("", formed=True)
    assert not transcript.delta(delta("1", 0, "Let me think."))
    assert transcript.delta(delta("", 0, "{}")) == "{}"
    assert transcript.text == "{}"


def test_what_the_site_said_of_a_gate_is_taken_back_from_the_whole() -> None:
    transcript = Transcript("", formed=False)
    transcript.delta(delta("1", 0, "I run it."))
    assert transcript.say("approval", "This waits.") == "\n\nThis waits."
    transcript.take_back("approval")
    transcript.delta(delta("2", 0, "It ran."))
    assert transcript.text == "I run it.\n\nIt ran."
