"""Ledger files: checked without the database, and every change in them is found."""

import errno
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from agents.engine.ledger import JSON, canonical
from agents.engine.outputs.timeline import Outputs
from conversations.erasure.steps import redact
from conversations.management.commands import export_ledger
from conversations.models import Conversation, Output, Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification import ledger_file
from conversations.verification.exported import verify_file
from conversations.verification.ledger_file import exported_ledger, last_line
from tests.conversations.recorded import MIXED, TWO_GATES, Site, at_once
from tests.engine.support import says

LEDGERS = Path(__file__).parents[2] / "ledgers"


@pytest.fixture
def lines(ann: User, site: Site) -> list[bytes]:
    """A conversation with a turn that did many things, one that was redacted, and one that waits."""
    prompt = site.ended(ann, *MIXED)
    text = site.ended(ann, says("One."), says("Two."), says("Three."), conversation=prompt.conversation)
    redact(prompt.conversation, [Step.objects.filter(prompt=text, type="text")[0].seq], ann, "Asked for.")
    site.runs(ann, *(says("x") for _ in range(3)), *TWO_GATES, conversation=prompt.conversation)
    return [line.encode() for line in exported_ledger(prompt.conversation_id)]


@pytest.mark.django_db(transaction=True)
def test_it_holds_all_and_is_checked_without_a_database(lines: list[bytes], django_db_blocker: DjangoDbBlocker) -> None:
    """The steps fold to the rows that the site has; the head is the conversation's."""
    prompt = Prompt.objects.order_by("pk")[0]
    rows = {row.position: row.entry() for row in Output.objects.filter(prompt=prompt)}
    conversation = prompt.conversation
    with django_db_blocker.block():
        found = verify_file(lines)
    assert found.problems == []
    chain = found.chain
    assert (chain.seq, chain.head, found.steps) == (conversation.seq, conversation.head, Step.objects.count())
    assert {output.position: output for output in Outputs(found.turns[prompt.pk]).in_order()} == rows
    payloads = [json.loads(line)["payload"] for line in lines if b'"seq"' in line and b'"payload"' in line]
    assert payloads == list(Step.objects.order_by("seq").values_list("payload", flat=True))


@pytest.mark.django_db(transaction=True)
def test_the_commands(ann: User, site: Site, tmp_path: Path) -> None:
    prompt = site.ended(ann, *MIXED)
    file, pk = tmp_path / "ledger.jsonl", str(prompt.conversation_id)
    call_command("export_ledger", pk, output=file)
    assert file.stat().st_mode & 0o777 == 0o600
    out = io.StringIO()
    call_command("export_ledger", pk, stdout=out)
    assert out.getvalue() == file.read_text()
    prompt.conversation.refresh_from_db()
    head = f"head: seq {prompt.conversation.seq}, digest {prompt.conversation.head}\n"
    assert ran(file) == (f"{head}1 conversation, {prompt.conversation.seq} steps: clean\n", 0)
    file.write_bytes(file.read_bytes().replace(b"Done.", b"Gone."))
    said, code = ran(file)
    assert "the chain is broken" in said
    assert code == 1
    new = ("--output", str(tmp_path / "new"))
    for arguments, why in (
        (("10000",), "no conversation 10000"),
        (("10000", *new), "no conversation 10000"),
        ((pk, "--output", str(file)), "exists"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("export_ledger", *arguments)
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(CommandError, match="No such file"):
        call_command("verify_ledger", file=tmp_path / "none")
    call_command("export_ledger", str(start_conversation(ann).pk), output=tmp_path / "empty")
    assert ran(tmp_path / "empty")[1] == 0


@pytest.mark.django_db(transaction=True)
def test_who_reads_slowly_keeps_nobody_waiting(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site goes on while the lines are read, which say what stood there at one moment; so does a long ledger."""
    monkeypatch.setattr(ledger_file, "IN_MEMORY", 100)
    prompt = site.ended(ann, *MIXED)
    count = Step.objects.count()
    lines = exported_ledger(prompt.conversation_id)
    first = next(lines)
    assert isinstance(at_once(lambda: start_prompt(prompt.conversation, ann, "Meanwhile."))[0], Prompt)
    found = verify_file([line.encode() for line in (first, *lines)])
    assert found.problems == []
    assert found.steps == count < Step.objects.count()


@pytest.mark.django_db(transaction=True)
def test_who_writes_goes_on_while_a_ledger_is_read(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the conversation that is read, of which the lines say what stood there at first."""
    prompt = site.ended(ann, *MIXED)
    count, read = Step.objects.count(), ledger_file._lines
    came: list[object] = []

    def lines(conversation: Conversation) -> Iterator[dict[str, JSON]]:
        came.extend(at_once(lambda: start_prompt(conversation, ann, "Meanwhile.")))
        yield from read(conversation)

    monkeypatch.setattr(ledger_file, "_lines", lines)
    found = verify_file([line.encode() for line in exported_ledger(prompt.conversation_id)])
    assert [type(each) for each in came] == [Prompt]
    assert found.problems == []
    assert found.steps == count < Step.objects.count()


@pytest.fixture
def closed_pipe() -> Iterator[IO[str]]:
    """A pipe whose reader went away, as `head` does. It is closed without an error, as the interpreter does it."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["export_ledger", "verify_ledger"])
def test_a_pipe_that_is_closed_ends_a_command_quietly(
    ann: User, site: Site, closed_pipe: IO[str], command: str
) -> None:
    """As it ends `cat`, by the number of the signal."""
    talk = site.ended(ann, *MIXED).conversation_id
    with pytest.raises(SystemExit) as ended:
        call_command(command, str(talk), stdout=closed_pipe)
    assert ended.value.code == 141


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["export_ledger", "verify_ledger"])
def test_a_full_disk_is_said_in_a_sentence(ann: User, site: Site, command: str) -> None:
    talk = site.ended(ann, *MIXED).conversation_id
    with Path("/dev/full").open("w") as full, pytest.raises(CommandError, match="No space left"):
        call_command(command, str(talk), stdout=full)


@pytest.mark.parametrize(
    ("what", "comes", "why"),
    [
        (OSError(errno.ENOSPC, "No space left"), CommandError, "No space left"),
        (Conversation.DoesNotExist(), CommandError, "There is no conversation 7"),
        (OperationalError("server closed the connection"), OperationalError, "closed the connection"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_file_is_made_whole_or_not_at_all(
    what: BaseException, comes: type[BaseException], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk is full, the conversation was erased meanwhile, the database is away or somebody stops it."""

    def lines(_: int) -> Iterator[str]:
        yield "{}"
        raise what

    monkeypatch.setattr(export_ledger, "exported_ledger", lines)
    with pytest.raises(comes, match=why):
        call_command("export_ledger", "7", output=tmp_path / "ledger.jsonl")
    assert list(tmp_path.iterdir()) == []


def ran(file: Path) -> tuple[str, int]:
    """What `verify_ledger --file` prints, and how it exits."""
    out = io.StringIO()
    try:
        call_command("verify_ledger", file=file, stdout=out)
    except CommandError as failed:
        return out.getvalue(), failed.returncode
    return out.getvalue(), 0


SAMPLE = (LEDGERS / "redacted.jsonl").read_bytes().splitlines(keepends=True)


@given(st.data())
def test_any_byte_that_was_changed_is_found(data: st.DataObject) -> None:
    lines = list(SAMPLE)
    number = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[number]) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[number][at]))
    lines[number] = lines[number][:at] + bytes([other]) + lines[number][at + 1 :]
    assert verify_file(b"".join(lines).splitlines(keepends=True)).problems


@given(st.data())
def test_a_line_that_was_dropped_doubled_or_moved_is_found(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(SAMPLE) - 1))
    to = data.draw(st.integers(0, len(SAMPLE) - 1).filter(lambda place: place != number))
    rest = SAMPLE[:number] + SAMPLE[number + 1 :]
    for changed in (rest, SAMPLE[:number] + SAMPLE[number : number + 1] + SAMPLE[number:]):
        assert verify_file(changed).problems
    assert verify_file([*rest[:to], SAMPLE[number], *rest[to:]]).problems


def doctored(change: Callable[[list[dict[str, object]]], object], name: str = "redacted") -> list[bytes]:
    """A recorded ledger as somebody changed it who knows the format."""
    return with_changes((LEDGERS / f"{name}.jsonl").read_bytes().splitlines(), change)


def with_changes(lines: list[bytes], *changes: Callable[[list[dict[str, object]]], object]) -> list[bytes]:
    """These lines as somebody changed them, with a last line that fits."""
    said = [json.loads(line) for line in lines[:-1]]
    for change in changes:
        change(said)
    body = [(canonical(each) + "\n").encode() for each in said]
    steps = [each for each in said if "seq" in each]
    seq, head = steps[-1]["seq"], str(steps[-1]["digest"])
    assert isinstance(seq, int | str)
    last = last_line(int(seq), head, len(steps), hashlib.sha256(b"".join(body)).hexdigest())
    return [*body, last.encode()]


def of(said: list[dict[str, object]], kind: str) -> dict[str, object]:
    """The first line of this kind."""
    return next(each for each in said if kind in each)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda said: said[0].update(version=99), "not a ledger in the format"),
        (lambda said: of(said, "prompt").update(state="failed"), "state of prompt"),
        (lambda said: of(said, "prompt").update(input_tokens=1), "input_tokens of prompt"),
        (lambda said: said.remove(of(said, "prompt")), "is not listed"),
        (lambda said: said.insert(1, {"prompt": 10**6}), "without steps"),
        (lambda said: said.remove(of(said, "redaction")), "the chain is broken"),
        (lambda said: said.insert(1, {"redaction": {"seq": 999, "sha256": "0"}}), "was redacted, but is missing"),
        (lambda said: said.pop(0), "not a ledger in the format"),
        (lambda said: said[0].update(version=True), "not a ledger in the format"),
        (lambda said: said.insert(1, {"what": 1}), "of an unknown kind"),
        (lambda said: said.append({"prompt": 7}), "is among the steps"),
        (lambda said: said[-1].update(seq="9"), "is not a step"),
        (lambda said: said[-1].update(actor="user:7"), "the chain is broken"),
        (lambda said: said.pop(), "state of prompt"),
    ],
)
def test_what_was_changed_by_somebody_who_knows_the_format_is_told(
    change: Callable[[list[dict[str, object]]], object], why: str
) -> None:
    assert any(why in str(problem) for problem in verify_file(doctored(change)).problems)


def test_what_a_model_saw_is_in_it() -> None:
    for change in (lambda said: of(said, "text").update(text="{}"), lambda said: said.remove(of(said, "text"))):
        problems = verify_file(doctored(change, "s99")).problems
        assert len(problems) == 3
        assert all("missing, or differs from what the model saw" in str(problem) for problem in problems)


def test_a_file_of_nothing_but_a_last_line_is_no_ledger() -> None:
    last = last_line(0, "", 0, hashlib.sha256(b"").hexdigest()).encode()
    assert "not a ledger in the format" in str(verify_file([last]).problems[0])
    assert verify_file([]).problems


@pytest.mark.parametrize(
    "line", [b"[" * 200_000 + b"\n", b'{"a":' * 9_000 + b"\n", b"\xff\n", b'{"a":NaN}\n', b"1" * 5_000]
)
def test_a_line_that_cannot_be_read_is_told(line: bytes) -> None:
    problems = verify_file([SAMPLE[0], line, *SAMPLE[1:]]).problems
    assert "line 2 is not a canonical JSON object" in str(problems[0])


def inside(type: str, **change: object) -> Callable[[list[dict[str, object]]], None]:
    """A change of the payload of the last step of this type."""

    def changed(said: list[dict[str, object]]) -> None:
        step = [each for each in said if each.get("type") == type][-1]
        step["payload"] = canonical(json.loads(str(step["payload"])) | change)

    return changed


@pytest.mark.parametrize(
    "change",
    [
        inside("action_result", model="m", usage={"input_tokens": "x"}),
        inside("action_result", usage=[]),
        inside("action_result", state={}),
        inside("action_start", snapshot=["x"]),
        inside("action_start", snapshot={"a": 1}),
        inside("action_call", payload=1.5),
        inside("text", text={"a": [None]}),
        lambda said: said[-1].update(payload="[" * 100_000),
        lambda said: said[-1].update(payload='{"a":NaN}'),
        lambda said: said[-1].update(payload="\ud800"),
        lambda said: said[-1].update(path="\ud800", time="x", prompt=-1),
        lambda said: of(said, "text").update(text="\ud800"),
        lambda said: of(said, "prompt").update(prompt=True),
    ],
)
def test_what_nobody_thought_of_is_told_and_the_rest_is_read(
    change: Callable[[list[dict[str, object]]], object], tmp_path: Path
) -> None:
    """By a sentence of the command, too."""
    lines = doctored(change, "s99")
    found = verify_file(lines)
    assert found.problems
    assert found.steps == verify_file((LEDGERS / "s99.jsonl").read_bytes().splitlines(keepends=True)).steps
    (tmp_path / "ledger.jsonl").write_bytes(b"".join(lines))
    assert ran(tmp_path / "ledger.jsonl")[1] == 1


@pytest.mark.django_db(transaction=True)
def test_what_was_left_of_a_redacted_step_is_checked(lines: list[bytes]) -> None:
    """What stays of it, such as the fence, is in no chain. An export of version 1 did not say what was left."""
    redaction = next(json.loads(line)["redaction"] for line in lines if line.startswith(b'{"redaction"'))

    def changed(said: list[dict[str, object]]) -> None:
        step = next(each for each in said if each.get("seq") == redaction["seq"])
        step["payload"] = canonical(json.loads(str(step["payload"])) | {"partial": True})

    def told(*changes: Callable[[list[dict[str, object]]], object]) -> str:
        return "\n".join(map(str, verify_file(with_changes(lines, *changes)).problems))

    why = f"seq {redaction['seq']}: was redacted, but is not what the redaction left"
    assert told() == ""
    assert why in told(changed)
    assert why in told(lambda said: of(said, "redaction").update(redaction=redaction | {"left_sha256": "0" * 64}))
    without = {name: value for name, value in redaction.items() if name != "left_sha256"}
    assert why in told(lambda said: of(said, "redaction").update(redaction=without))
    assert (
        told(lambda said: of(said, "redaction").update(redaction=without), lambda said: said[0].update(version=1)) == ""
    )
