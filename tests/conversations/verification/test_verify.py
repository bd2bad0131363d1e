"""`verify_ledger`: clean on recorded turns, and every kind of tampering is reported."""

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from agents.engine.ledger import JSON, canonical
from agents.engine.outputs.timeline import Outputs
from conversations.database import guard
from conversations.erasure.conversations import erase
from conversations.erasure.steps import redact
from conversations.ledger.journal import append
from conversations.ledger.reading import read_steps
from conversations.ledger.rows import CHANGING
from conversations.models import Conversation, File, Origin, Output, Prompt, State
from conversations.models import Step as Row
from conversations.prompts.start import (
    cancel_prompt,
    continue_prompt,
    repeat_prompt,
    start_conversation,
    start_prompt,
)
from conversations.verification import stored
from conversations.verification.rules import LedgerProblem
from conversations.verification.stored import verify
from tests.conversations.recorded import MIXED, ONE_GATE, TWO_GATES, Site, meddle, place, record, said
from tests.guarding import remove_guard

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User, site: Site) -> Prompt:
    """A turn that did many things: steps, gates, a file, a widget, errors."""
    return site.ended(ann, *MIXED)


@pytest.fixture
def unguarded(db: None) -> Iterator[None]:
    """Somebody who owns the database lifts the triggers first."""
    remove_guard()
    yield
    guard.install()


def told(prompt: Prompt) -> list[str]:
    return [str(problem) for problem in verify(prompt.conversation_id).problems]


def ran(*args: object) -> tuple[str, str]:
    """What the command prints, and how it fails."""
    out = io.StringIO()
    try:
        call_command("verify_ledger", *map(str, args), stdout=out)
    except CommandError as failed:
        return out.getvalue(), f"{failed.returncode}: {failed}"
    return out.getvalue(), ""


def test_it_is_clean_on_whatever_was_recorded(ann: User, site: Site, prompt: Prompt) -> None:
    """Ended, waiting, running, queued, and several prompts of one conversation."""
    site.runs(ann, *TWO_GATES)
    start_prompt(start_conversation(ann), ann, "Queued.")
    start_prompt(prompt.conversation, None, None)
    site.approves(site.runs(ann, *ONE_GATE), ann)
    start_conversation(ann, "Empty.")
    count = Row.objects.count()
    assert ran("--all") == (f"5 conversations, {count} steps: clean\n", "")
    assert ran(prompt.conversation_id)[0].startswith("1 conversation, ")
    assert {
        output.position: output for output in Outputs(read_steps(prompt.conversation_id, prompt.pk)).in_order()
    } == {row.position: row.entry() for row in Output.objects.filter(prompt=prompt)}


def test_it_says_what_is_wrong_where_and_exits_with_1(ann: User, prompt: Prompt, unguarded: None) -> None:
    other = start_prompt(start_conversation(ann), ann, "Fine.")
    meddle("UPDATE conversations_step SET actor = 'policy:7' WHERE seq = 3 AND prompt_id = %s", [prompt.pk])
    out, error = ran("--all")
    assert out.splitlines() == [
        f"conversation {prompt.conversation_id}, seq 3: the chain is broken: this step, or the one before it, is not"
        " what was recorded"
    ]
    assert error == f"1: 2 conversations, {Row.objects.count()} steps: 1 problem"
    assert ran(other.conversation_id)[1] == ""


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("payload", '{"text":"I never said that."}'),
        ("payload", "no JSON"),
        ("actor", "'; --"),
        ("type", "note"),
        ("path", "2"),
        ("time", "2026-01-01 00:00:00+00:00" if connection.vendor == "postgresql" else "2026-01-01 00:00:00"),
        ("digest", "0" * 64),
        ("attempt", 7),
    ],
)
def test_a_step_that_was_changed_is_told(prompt: Prompt, unguarded: None, column: str, value: object) -> None:
    text = Row.objects.get(prompt=prompt, type="text", path="1")
    assert meddle(f"UPDATE conversations_step SET {column} = %s WHERE id = %s", [value, text.pk]) == 1
    problems = told(prompt)
    assert any(problem.startswith(f"seq {text.seq}: ") for problem in problems), problems
    chain = [problem for problem in problems if "chain" in problem]
    assert bool(chain) == (column != "attempt")


def test_a_step_of_another_conversation_is_told(ann: User, prompt: Prompt, unguarded: None) -> None:
    other = start_prompt(start_conversation(ann), ann, "Another.")
    meddle("UPDATE conversations_step SET prompt_id = %s WHERE seq = 4 AND prompt_id = %s", [other.pk, prompt.pk])
    assert f"seq 4: belongs to prompt {other.pk} of another conversation" in told(prompt)


def test_a_step_that_was_dropped_is_told(prompt: Prompt, unguarded: None) -> None:
    meddle("DELETE FROM conversations_step WHERE seq = 5")
    assert "seq 6: follows step 4: there is a gap" in told(prompt)


def test_a_last_step_that_was_dropped_is_told(prompt: Prompt, unguarded: None) -> None:
    last = Row.objects.count()
    meddle("DELETE FROM conversations_step WHERE seq = %s", [last])
    problems = told(prompt)
    assert f"seq {last - 1}: the conversation's last step is stored as {last}, or with another digest" in problems
    assert f"seq {last - 1}: state of {prompt} is 'completed', but its steps say 'running'" in problems


def test_steps_that_changed_places_are_told(prompt: Prompt, unguarded: None) -> None:
    for old, new in ((4, -1), (5, 4), (-1, 5)):
        meddle("UPDATE conversations_step SET seq = %s WHERE seq = %s", [new, old])
    problems = told(prompt)
    assert [seq for seq in range(1, 10) if any(p.startswith(f"seq {seq}: the chain") for p in problems)] == [4, 5, 6]


def test_a_step_that_was_slipped_in_with_its_chain_breaks_a_rule(prompt: Prompt) -> None:
    """By somebody who knows the chain: the journal itself would write it."""
    at = place(prompt)
    append(at, record(prompt, at, said("PS")))
    assert told(prompt) == [f"seq {at.seq + 1}: text after the turn's end"]


@pytest.mark.parametrize("column", [name for name in CHANGING if not name.endswith("_at")] + ["path", "parent", "type"])
def test_an_output_that_was_changed_is_told(prompt: Prompt, column: str) -> None:
    row = Output.objects.get(prompt=prompt, path="1/1")
    assert meddle(f"UPDATE conversations_output SET {column} = 'x' WHERE id = %s", [row.pk]) == 1
    assert told(prompt) == [f"seq {row.position}: the output differs from its steps: {column}"]


@pytest.mark.parametrize("column", ["asked_at", "expires_at", "decided_at"])
def test_a_time_of_an_output_that_was_changed_is_told(prompt: Prompt, column: str) -> None:
    row = Output.objects.get(prompt=prompt, path="1/1")
    for value in ("NULL", "'2026-01-01 00:00:00'"):
        meddle(f"UPDATE conversations_output SET {column} = {value} WHERE id = %s", [row.pk])
        assert told(prompt) == [f"seq {row.position}: the output differs from its steps: {column}"]


def test_outputs_that_are_missing_or_too_many_are_told(prompt: Prompt) -> None:
    row = Output.objects.get(prompt=prompt, path="1/1")
    meddle("UPDATE conversations_output SET position = 10000 WHERE id = %s", [row.pk])
    assert told(prompt) == [
        f"seq {row.position}: the output is missing",
        "seq 10000: an output is stored here that no step opened",
    ]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("state", "cancelled"),
        ("stop_reason", "x"),
        ("rounds", 7),
        ("input_tokens", 7),
        ("output_tokens", 7),
        ("cached_tokens", 7),
        ("reasoning_tokens", 7),
        ("ended_at", None),
    ],
)
def test_a_prompts_row_that_was_changed_is_told(prompt: Prompt, column: str, value: object) -> None:
    meddle(f"UPDATE conversations_prompt SET {column} = %s", [value])
    (problem,) = told(prompt)
    assert f"{column} of {prompt} is {value!r}, but its steps say" in problem


@pytest.mark.parametrize(
    ("column", "value"), [("input", "Pay Eve."), ("tier", "high"), ("origin", "api"), ("policy", "another")]
)
def test_a_turn_that_was_asked_otherwise_than_its_call_says_is_told(prompt: Prompt, column: str, value: str) -> None:
    """Pages, exports and the model's history read the row. What stood there is not said again (S14)."""
    meddle(f"UPDATE conversations_prompt SET {column} = %s", [value])
    assert told(prompt) == [f"seq 1: {prompt} differs from its call: {column}"]


def test_what_a_turn_goes_on_with_or_asks_again_is_told(ann: User, site: Site) -> None:
    stopped = cancel_prompt(site.runs(ann, *ONE_GATE).pk, ann)
    more = cancel_prompt(continue_prompt(stopped.pk, ann).pk, ann)
    again = repeat_prompt(stopped.pk, ann)
    assert told(again) == []
    meddle("UPDATE conversations_prompt SET continues_id = repeats_id, repeats_id = continues_id")
    ends = [problem.partition(": ")[2] for problem in told(again)]
    assert ends == [f"{each} differs from its call: continues_id, repeats_id" for each in (more, again)]


def test_who_asked_for_a_turn_is_told(ann: User, bob: User, site: Site, prompt: Prompt) -> None:
    """Where its call says so: one in which nobody says anything is the system's, whoever had it started."""
    unsaid = start_prompt(prompt.conversation, ann, None, origin=Origin.API)
    by_system = start_prompt(start_conversation(ann), None, "Every day.", origin=Origin.WORKFLOW)
    by_trigger = start_prompt(start_conversation(ann), ann, origin=Origin.TRIGGER, reminder="Look at the logs.")
    assert [*told(unsaid), *told(by_system), *told(by_trigger)] == []
    for asked in (prompt, by_system, by_trigger):
        meddle("UPDATE conversations_prompt SET asked_by_id = %s WHERE id = %s", [bob.pk, asked.pk])
        assert told(asked) == [f"seq 1: {asked} differs from its call: asked_by_id"]


def test_a_slot_that_is_wrong_is_told(ann: User, site: Site, prompt: Prompt) -> None:
    waiting = site.runs(ann, *ONE_GATE)
    assert waiting.state == State.WAITING
    meddle("UPDATE conversations_conversation SET active_prompt_id = NULL WHERE id = %s", [waiting.conversation_id])
    assert told(waiting)[0].endswith("has begun and does not hold the slot")
    meddle(
        "UPDATE conversations_conversation SET active_prompt_id = %s WHERE id = %s", [prompt.pk, prompt.conversation_id]
    )
    assert told(prompt)[0].endswith("has ended and still holds the slot")


@pytest.mark.parametrize(("column", "value"), [("seq", 3), ("head", "0" * 64)])
def test_a_conversation_that_was_changed_is_told(prompt: Prompt, column: str, value: object) -> None:
    meddle(f"UPDATE conversations_conversation SET {column} = %s", [value])
    assert "the conversation's last step is stored as" in told(prompt)[0]


def test_a_prompt_without_steps_is_told(ann: User, prompt: Prompt) -> None:
    Prompt.objects.create(conversation=prompt.conversation, number=9)
    assert told(prompt) == ["seq 0: Prompt 9 of conversation " + f"{prompt.conversation_id} has no steps"]


def test_a_snapshot_that_is_not_what_the_model_saw_is_told(prompt: Prompt) -> None:
    meddle("UPDATE conversations_snapshot SET text = '{}'")
    problems = told(prompt)
    assert len(problems) == 2
    assert all("missing, or differs from what the model saw" in problem for problem in problems)


def test_files_are_told(prompt: Prompt) -> None:
    file = File.objects.get()
    Path(file.content.path).write_bytes(b"other")
    assert told(prompt)[0].endswith(f"the content of the file {file.pk} is not what was stored")
    Path(file.content.path).unlink()
    assert told(prompt)[0].endswith(f"the content of the file {file.pk} is missing")
    meddle("DELETE FROM conversations_file")
    assert told(prompt)[0].endswith(f"the file {file.pk} is missing")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has somebody do this once a turn was read, before the files that it names are looked for."""
    named = stored._references

    def happens(act: Callable[[], object]) -> None:
        acts = [act]

        def late(*read: Any) -> Iterator[LedgerProblem]:
            while acts:
                acts.pop()()
            yield from named(*read)

        monkeypatch.setattr(stored, "_references", late)

    return happens


def test_a_conversation_that_is_erased_while_its_files_are_read_is_no_problem(
    ann: User, site: Site, prompt: Prompt, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    other = site.ended(ann, *MIXED)
    meanwhile(lambda: erase(prompt.conversation, ann))
    assert ran("--all") == (f"1 conversation, {Row.objects.filter(prompt=other).count()} steps: clean\n", "")
    Path(File.objects.get(conversation=other.conversation).content.path).unlink()
    meanwhile(lambda: erase(other.conversation, ann))
    with pytest.raises(Conversation.DoesNotExist):
        verify(other.conversation_id)


def test_a_step_that_is_redacted_while_files_are_read_is_no_problem(
    ann: User, prompt: Prompt, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """What was wrong besides is told all the same."""
    made = Row.objects.get(prompt=prompt, type="file")
    meddle("UPDATE conversations_prompt SET rounds = 7")
    meanwhile(lambda: redact(prompt.conversation, [made.seq], ann, "Old."))
    (problem,) = told(prompt)
    assert "rounds of" in problem
    assert not File.objects.exists()


def test_conversations_that_are_not_there(ann: User, prompt: Prompt) -> None:
    erase(prompt.conversation, ann)
    assert ran(prompt.conversation_id) == (
        f"conversation {prompt.conversation_id}: erased by ann\n1 conversation, 0 steps: clean\n",
        "",
    )
    assert ran(10**6) == ("conversation 1000000: not found\n", "1: 1 conversation, 0 steps: 1 problem")
    with pytest.raises(CommandError, match="required"):
        call_command("verify_ledger")
    assert not Conversation.objects.exists()


def changed(row: Row, payload: str) -> None:
    assert meddle("UPDATE conversations_step SET payload = %s WHERE id = %s", [payload, row.pk]) == 1


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize(
    ("where", "change"),
    [
        (("action_result", "1"), {"usage": {"input_tokens": "x"}}),
        (("action_result", "1"), {"usage": {"input_tokens": [1]}}),
        (("action_result", "1/1/human"), {"decision": {"a": 1}}),
        (("action_result", "1/1/human"), {"via": [1]}),
        (("action_result", ""), {"state": {}}),
        (("action_call", "1/1"), {"payload": 0}),
        (("action_call", "1/1"), {"policy": {}}),
        (("action_call", "1/1/human"), {"payload": 1.5}),
        (("action_call", ""), {"payload": 0, "redacted": True}),
        (("action_start", "1"), {"snapshot": {"a": 1}}),
        (("file", "1/2"), {"file": "x"}),
        (("file", "1/2"), {"file": 10**30}),
        (("file", "1/2"), {"file": [], "redacted": True}),
    ],
)
def test_a_payload_that_nobody_thought_of_is_told_and_the_rest_is_checked(
    site: Site, prompt: Prompt, where: tuple[str, str], change: dict[str, JSON]
) -> None:
    """The next turn of the same conversation as well."""
    row = Row.objects.filter(prompt=prompt, type=where[0], path=where[1])[0]
    later = site.ended(prompt.conversation.owner, *ONE_GATE, conversation=prompt.conversation)
    other = Row.objects.filter(prompt=later, type="text")[0]
    changed(row, canonical(row.content | change))
    meddle("UPDATE conversations_step SET attempt = 7 WHERE id = %s", [other.pk])
    problems = told(prompt)
    assert any(problem.startswith(f"seq {row.seq}: the chain is broken") for problem in problems)
    assert f"seq {other.seq}: the column attempt is 7, but the payload differs" in problems
    assert not any("\n" in problem for problem in problems)


@pytest.mark.parametrize("payload", ["[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000, '{"text":NaN}', "1" * 5_000])
def test_what_cannot_even_be_parsed_is_told(prompt: Prompt, unguarded: None, payload: str) -> None:
    row = Row.objects.get(prompt=prompt, type="text", path="1")
    changed(row, payload)
    assert f"seq {row.seq}: the chain is broken: this step, or the one before it, is not what was recorded" in told(
        prompt
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_no_change_makes_it_fail(prompt: Prompt, unguarded: None, seed: int) -> None:
    """Anything, anywhere in any payload: there is always a problem, and never an error."""
    draw = random.Random(seed)
    rows = list(Row.objects.order_by("seq"))
    for _ in range(30):
        row = draw.choice(rows)
        payload = place = row.content
        while inner := [value for value in place.values() if isinstance(value, dict) and value and draw.random() < 0.6]:
            place = draw.choice(inner)
        place[draw.choice([*place, "x"])] = draw.choice([None, True, -1, 1.5, "x", "", [], {}, [1], {"a": 1}, 10**30])
        if canonical(payload) != row.payload:
            changed(row, canonical(payload))
            assert told(prompt), payload
            changed(row, row.payload)
    assert told(prompt) == []


def test_that_the_database_is_away_is_no_problem_of_a_ledger(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(stored, "_outputs", away)
    with pytest.raises(OperationalError):
        verify(prompt.conversation_id)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL takes no such text")
def test_bytes_that_are_no_text_are_told(prompt: Prompt, unguarded: None) -> None:
    """SQLite keeps them, and its own error is the one of a database that is away."""
    meddle("UPDATE conversations_step SET payload = CAST(x'7b22ff' AS TEXT) WHERE seq = 3")
    assert "cannot be checked: OperationalError" in told(prompt)[0]


@pytest.mark.parametrize("number", ["0", "-1", "9" * 23, "x"])
@pytest.mark.parametrize(
    "command",
    [
        ("verify_ledger",),
        ("export_ledger",),
        ("erase", "--by", "ann", "--reason", "Old."),
        ("redact", "--by", "ann", "--reason", "Old."),
    ],
)
def test_a_number_that_no_database_has_is_said_in_a_sentence(ann: User, command: tuple[str, ...], number: str) -> None:
    with pytest.raises(CommandError, match=f"'{number}' is not a conversation id: use a whole number from 1 up"):
        call_command(*command, "--", number)


def test_a_number_that_no_step_has_is_said_in_a_sentence(ann: User) -> None:
    with pytest.raises(CommandError, match="'0' is not a step number: use a whole number from 1 up"):
        call_command("redact", "--by", "ann", "--reason", "Old.", "1", "0")


def test_a_problem_does_nothing_to_the_terminal_it_is_read_on(prompt: Prompt, unguarded: None) -> None:
    meddle("UPDATE conversations_step SET path = %s WHERE seq = 3", ["\x1b[2J"])
    out, _ = ran(prompt.conversation_id)
    assert "[U+001B]" in out
    assert "\x1b" not in out
