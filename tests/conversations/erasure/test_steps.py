"""Redacting steps: what was said goes from everywhere, that it was said stays, and the ledger still verifies."""

import io
import json
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from pydantic import create_model

from agents.engine import actors, paths
from agents.engine.execution.gates import gate_call
from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import JSON, Step, canonical
from conversations.approvals.decisions import decide
from conversations.database import guard
from conversations.display.cards import cards
from conversations.erasure.conversations import erase
from conversations.erasure.steps import NotRedacted, redact
from conversations.files.uploads import Upload
from conversations.ledger.redacted import sha256
from conversations.models import Conversation, File, Output, Prompt, Redaction, Snapshot
from conversations.models import Step as Row
from conversations.prompts.killswitch import active_switch
from conversations.prompts.start import cancel_prompt, repeat_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.questions import asked
from tests.conversations.recorded import ONE_GATE, Site, lies_there, meddle, pending
from tests.conversations.support import Story
from tests.engine.support import call, says
from tests.guarding import remove_guard

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "hunter2-correct-horse"
GATED = (
    Answer(
        "One thing.",
        (call("shell.run", command=f"echo {SECRET}"),),
        {"input_tokens": 1, "output_tokens": 1},
        "test-1",
        items=({"type": "function_call", "arguments": f"echo {SECRET}"},),
    ),
    says("Done."),
)


def holding(text: str = SECRET) -> set[str]:
    """The tables of the site in which this text stands, and its folders."""
    found = set()
    for model in apps.get_models():
        for row in model._base_manager.values():
            if text in json.dumps(row, default=str):
                found.add(model.__name__)
    for folder in (settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES):
        found |= {
            str(folder) for path in Path(folder).rglob("*") if path.is_file() and text.encode() in path.read_bytes()
        }
    return found


def seq(prompt: Prompt, type: str, path: str) -> int:
    return Row.objects.get(prompt=prompt, type=type, path=path).seq


def taken_out(prompt: Prompt, by: User, *seqs: int) -> list[int]:
    """Redact, and see that the ledger verifies, also where it is folded again. Returns the steps."""
    done = redact(prompt.conversation, seqs, by, "A password.")
    assert verify(prompt.conversation_id).problems == []
    return done.seqs


def test_a_call_goes_with_its_gate_its_edit_and_the_models_items(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *GATED)
    gate = pending(prompt)[0]
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input={"command": f"echo {SECRET} | wc"})
    site.works()
    before = {row.seq: row for row in Row.objects.all()}
    result = seq(prompt, "action_result", "1/0")
    called = seq(prompt, "action_call", "1/0")
    assert SECRET in before[result].payload

    done = redact(prompt.conversation, [called], ann, "A password.")

    gates = [seq(prompt, type, "1/0/human") for type in ("action_call", "action_result")]
    assert done.seqs == sorted([called, *gates, seq(prompt, "action_result", "1")])
    assert done.copies == [result]  # the tool says again what it was asked: that is for a person to see
    assert taken_out(prompt, ann, result) == [result]
    assert holding() == set()
    row = Output.objects.get(prompt=prompt, path="1/0")
    assert (row.gate, row.result, row.tool, row.digest) == ("approved", "success", "shell.run", row.digest)
    assert row.content["input"] == {"redacted": "[redacted]"}
    after = {row.seq: row for row in Row.objects.all()}
    assert {seq: row.digest for seq, row in after.items()} == {seq: row.digest for seq, row in before.items()}
    assert {seq for seq in after if after[seq].payload != before[seq].payload} == {*done.seqs, result}
    kept = Redaction.objects.get(seq=called)
    assert (kept.redacted_by, kept.reason) == ("ann", "A password.")
    assert (kept.sha256, kept.left_sha256) == (sha256(before[called].payload), sha256(after[called].payload))


def test_a_message_goes_from_input_title_files_and_the_turn_that_asks_it_again(ann: User, site: Site) -> None:
    conversation = start_conversation(ann)
    file = Upload.of(SimpleUploadedFile(f"{SECRET}.txt", SECRET.encode(), "text/plain"))
    site.starts(ann, says("Hello."), says("Again."), conversation=start_conversation(ann))  # the script
    first = start_prompt(conversation, ann, f"My password is {SECRET}.", files=[file])
    cancel_prompt(first.pk, ann)
    again = repeat_prompt(first.pk, ann)
    Prompt.objects.filter(pk=again.pk).update(repeats=first)
    site.works()
    content = File.objects.filter(prompt=first).get().content
    assert holding() == {
        "Conversation", "Prompt", "Step", "File", str(settings.MEDIA_ROOT), str(settings.AGENTSITE_WORKSPACES)
    }  # fmt: skip

    assert seq(again, "action_call", "") in taken_out(first, ann, seq(first, "action_call", ""))

    assert holding() == set()
    assert {Prompt.objects.get(pk=pk).input for pk in (first.pk, again.pk)} == {"[redacted]"}
    assert Conversation.objects.get(pk=conversation.pk).title == "[redacted]"
    assert not lies_there(content)
    assert site.runs(ann, says("Hello."), says("Again."), conversation=conversation).state == "completed"


@pytest.mark.parametrize(
    ("script", "type", "path"),
    [
        ((says(f"It is {SECRET}."),), "text", "1"),
        ((says("x", call("report.write", name=SECRET)), says("Done.")), "action_result", "1/0"),
        ((says("x", call("report.write", name=SECRET)), says("Done.")), "file", "1/0"),
        ((says("x", call("report.write", name=SECRET)), says("Done.")), "widget", "1/0"),
    ],
)
def test_each_kind_folds_on(ann: User, site: Site, script: tuple[Answer, ...], type: str, path: str) -> None:
    """The outputs are those of the redacted steps; a file is gone with its content."""
    prompt = site.ended(ann, *script)
    content = File.objects.get().content if File.objects.exists() else None
    taken_out(prompt, ann, seq(prompt, type, path))
    assert Row.objects.get(prompt=prompt, type=type, path=path).content["redacted"] is True
    assert File.objects.exists() == (content is not None and type != "file")
    if content:
        assert lies_there(content) == (type != "file")
    if type == "text":
        assert holding() == set()


def test_what_a_model_was_told_goes_with_the_message_where_no_other_round_was_told_the_same(
    ann: User, site: Site
) -> None:
    first, second = site.ended(ann, says("Hello.")), site.ended(ann, says("Hello."))
    assert Snapshot.objects.count() == 1
    taken_out(first, ann, seq(first, "action_call", ""))
    assert Snapshot.objects.count() == 1
    taken_out(second, ann, seq(second, "action_call", ""))
    assert Snapshot.objects.count() == 0
    assert verify(first.conversation_id).problems == []


def test_what_cannot_be_redacted(ann: User, site: Site) -> None:
    """A turn that waits, a step that is not there, one without content, and one twice."""
    waits, ended = site.runs(ann, *ONE_GATE), site.ended(ann, says("Hello."))
    text = seq(ended, "text", "1")
    taken_out(ended, ann, text)
    for prompt, wanted, why in (
        (waits, 1, "has not ended. Stop it first"),
        (ended, 99, "has no step 99"),
        (ended, text, "no content, or was redacted before"),
        (ended, seq(ended, "action_result", ""), "no content"),
    ):
        with pytest.raises(NotRedacted, match=why):
            redact(prompt.conversation, [wanted], ann, "")
    assert Redaction.objects.count() == 1


def test_the_database_lets_go_of_that_payload_alone_and_once(ann: User, site: Site) -> None:
    prompt = site.ended(ann, says(SECRET), says("Done."))
    text = Row.objects.get(prompt=prompt, type="text")
    Redaction.objects.create(conversation=prompt.conversation, seq=text.seq, sha256="0" * 64, redacted_by="ann")
    for change, where in (
        ("payload = '{}'", f"seq = {text.seq}"),  # under a row of another payload
        ("payload = '{}'", f"seq = {text.seq - 1}"),
    ):
        refused(f"UPDATE conversations_step SET {change} WHERE {where}")
    Redaction.objects.all().delete()
    taken_out(prompt, ann, text.seq)
    refused(f"UPDATE conversations_step SET payload = '{{}}' WHERE seq = {text.seq}")
    refused(f"DELETE FROM conversations_step WHERE seq = {text.seq}")


@pytest.mark.parametrize(
    "column", [name for name in guard.FIXED_COLUMNS if name not in ("id", "conversation_id", "time")]
)
def test_the_database_lets_nothing_else_change_with_the_payload(ann: User, site: Site, column: str) -> None:
    prompt = site.ended(ann, says(SECRET))
    text = Row.objects.get(prompt=prompt, type="text")
    content = sha256(text.payload)
    own = {"sha256": content, "left_sha256": sha256("{}")}
    Redaction.objects.create(conversation=prompt.conversation, seq=text.seq, redacted_by="ann", **own)
    value = "'x'" if column in ("path", "actor", "type", "digest") else "7"
    refused(f"UPDATE conversations_step SET payload = '{{}}', {column} = {value} WHERE id = {text.pk}")
    refused(f"UPDATE conversations_step SET payload = '{{ }}' WHERE id = {text.pk}")  # not what was announced
    assert meddle("UPDATE conversations_step SET payload = '{}' WHERE id = %s", [text.pk]) == 1


def refused(sql: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        meddle(sql)


def test_a_redaction_that_was_tampered_with_is_told(ann: User, site: Site) -> None:
    prompt = site.ended(ann, says(SECRET))
    text = seq(prompt, "text", "1")
    taken_out(prompt, ann, text)
    kept = Redaction.objects.get(seq=text)
    Redaction.objects.filter(pk=kept.pk).update(sha256="0" * 64)
    assert f"seq {text}: the chain is broken" in told(prompt)
    Redaction.objects.all().delete()
    assert f"seq {text}: the chain is broken" in told(prompt)
    Redaction.objects.bulk_create([kept])
    assert told(prompt) == ""
    remove_guard()
    meddle("UPDATE conversations_step SET payload = %s WHERE seq = %s", ['{"redacted":true,"text":"Mine."}', text])
    assert f"seq {text}: was redacted, but still has content" in told(prompt)
    Redaction.objects.create(conversation=prompt.conversation, seq=99, sha256="0" * 64, redacted_by="ann")
    assert "seq 99: was redacted, but is missing" in told(prompt)


@pytest.mark.parametrize(
    ("type", "path", "change"),
    [
        ("action_call", "", {"policy": "another"}),
        ("action_call", "", {"origin": "api"}),
        ("action_start", "1", {"fence": 7}),
    ],
)
def test_what_was_left_of_a_step_is_kept_as_well(
    ann: User, site: Site, type: str, path: str, change: dict[str, JSON]
) -> None:
    """Somebody changes by hand what no redaction takes out: the chain does not go over it."""
    prompt = site.ended(ann, says(SECRET))
    taken_out(prompt, ann, seq(prompt, "action_call", ""))
    row = Row.objects.get(prompt=prompt, type=type, path=path)
    remove_guard()
    meddle("UPDATE conversations_step SET payload = %s WHERE id = %s", [canonical(row.content | change), row.pk])
    assert f"seq {row.seq}: was redacted, but is not what the redaction left" in told(prompt)
    Redaction.objects.filter(seq=row.seq).update(left_sha256="")
    assert f"seq {row.seq}: was redacted, but is not what the redaction left" in told(prompt)


def told(prompt: Prompt) -> str:
    return "\n".join(map(str, verify(prompt.conversation_id).problems))


def test_another_versions_trigger_is_replaced(ann: User, site: Site) -> None:
    """What stood there before redactions were known refuses them all."""
    remove_guard()
    if connection.vendor == "postgresql":
        meddle(
            "CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
        )
        for sql in guard.POSTGRES.values():
            meddle(sql)
    else:
        meddle(
            "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON conversations_step"
            " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    assert "ledger_no_update" in guard.missing(connection)
    guard.install()
    assert guard.missing(connection) == []
    prompt = site.ended(ann, says(SECRET))
    taken_out(prompt, ann, seq(prompt, "text", "1"))


def test_an_erased_conversation_takes_its_redactions_along(ann: User, site: Site) -> None:
    prompt = site.ended(ann, says(SECRET))
    taken_out(prompt, ann, seq(prompt, "text", "1"))
    erase(prompt.conversation, ann)
    assert not Redaction.objects.exists()


def test_the_command(ann: User, site: Site) -> None:
    prompt = site.ended(ann, says(SECRET, call("fx.read", a=1)), says(SECRET))
    text, other = seq(prompt, "text", "1"), seq(prompt, "text", "2")
    out = io.StringIO()
    arguments: Any = {"by": "ann", "reason": "Old.", "stdout": out}
    call_command("redact", str(prompt.conversation_id), str(text), **arguments)
    assert out.getvalue() == (
        f"Redacted in conversation {prompt.conversation_id}: steps {text}.\n"
        f"These steps still contain the same text: {other}. Consider redacting them too.\n"
    )
    for conversation, by, why in (
        (prompt.conversation_id, "ann", "no content"),
        (prompt.conversation_id, "nobody", "no user 'nobody'"),
        (10**6, "ann", "no conversation 1000000"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("redact", str(conversation), str(text), by=by, reason="Old.")


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_reason_says_something(ann: User, site: Site, reason: str) -> None:
    """What cannot be undone is not done without one."""
    talk = str(site.ended(ann, says(SECRET)).conversation_id)
    for command in (("redact", talk, "1"), ("erase", talk), ("erase_user", "ann"), ("kill_switch", "on")):
        by = ("--by", "ann") if command[0] != "kill_switch" else ()
        with pytest.raises(CommandError, match=r"(?i)say why|give --reason"):
            call_command(*command, *by, "--reason", reason)
    assert SECRET in Row.objects.get(type="text").payload
    assert active_switch() is None


def test_a_call_goes_with_its_cards_however_often_it_was_interrupted(ann: User) -> None:
    story = Story(ann)
    story.asks_model()
    command = story.call("shell.run", command=f"echo {SECRET}")
    story.answers(command)
    for attempt in range(1, 13):
        story.begins(command, attempt)
        asked = {"ask": "interrupted", "tool": "shell.run", "input": {"command": f"echo {SECRET}"}, "digest": "d"}
        story.append(gate_call(card := paths.card(command.path, attempt), asked))
        story.append(Step(actors.user(ann.pk), "action_result", {"decision": "run_again", "digest": "d"}, card))
    story.comes_to(command, "Done.")
    prompt = story.ends()
    redact(prompt.conversation, [seq(prompt, "action_call", command.path)], ann, "A password.")
    assert holding() == set()


@pytest.mark.parametrize("which", ["question", "answer", "asked again", "last answer"])
def test_a_question_goes_with_its_answers(ann: User, site: Site, which: str) -> None:
    """An answer is content, and so is the question; both are repeated where the policy asks again."""
    fields: dict[str, Any] = {"word": (Literal[f"{SECRET}!", "no"], ...), "more": (date | None, None)}
    prompt, gate = asked(site, ann, create_model("Form", __doc__=f"Is it {SECRET}?", **fields))
    answer = {"word": f"{SECRET}!", "more": SECRET}
    decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer=answer)
    site.works()
    (again,) = pending(prompt)
    decide(gate.pk, ann, "answer", digest=again.digest, via="page", answer={"word": f"{SECRET}!"})
    site.works()
    type_, path = {
        "question": ("action_call", "1"),
        "answer": ("action_result", "1"),
        "asked again": ("action_call", "1/card1"),
        "last answer": ("action_result", "1/card1"),
    }[which]
    assert len(taken_out(prompt, ann, seq(prompt, type_, path))) == 4
    taken_out(prompt, ann, seq(prompt, "action_result", ""))  # what the program made of it is its own
    assert holding() == set()
    row = Output.objects.select_related("conversation__owner", "prompt").get(pk=gate.pk)
    (card,) = cards([row], ann)
    assert (card.title, card.verdict) == ("[redacted]", "Answered by you")
    assert "[redacted]" in card.answer[0].text
