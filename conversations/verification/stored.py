"""Checking what the database stores for a conversation against the steps of its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models.fields.files import FieldFile

from agents.engine.closing import answer_usage
from agents.engine.interfaces.attached import Attachment
from agents.engine.ledger import Step
from agents.engine.root import site_of, words_of
from conversations.ledger.prompt_row import UNCHANGED, PromptStanding
from conversations.ledger.redacted import MARK, KeptStep, sha256
from conversations.ledger.rows import output_columns
from conversations.models import Conversation, File, Origin, Output, Prompt, Redaction, Snapshot, Usage
from conversations.models import Step as StepRow
from conversations.models.prompt import OPEN
from conversations.verification.chain import Chain, RedactedPayload
from conversations.verification.rules import LedgerProblem, fold_outputs, problems_of, reporting_errors

AT_ONCE = 500
"""Steps of a chain that are read at a time."""
CHUNK = 2**20
"""Bytes of a file that are read at a time."""
Alive = Callable[[], object]
"""Called regularly while the check goes on."""


@dataclass
class Verified:
    """The number of steps that were checked, and the problems found."""

    steps: int = 0
    problems: list[LedgerProblem] = field(default_factory=list)


def verify(conversation_id: int, alive: Alive = lambda: None) -> Verified:
    """Check everything about a conversation's ledger. Raises Conversation.DoesNotExist, and if the database is
    unavailable.

    Whatever cannot be checked is a problem, and the rest is still checked.

    Nobody is blocked for long. Steps do not change, so the chain is walked without a lock, except for the few steps
    that are appended meanwhile. A turn is read under a lock, with its outputs and rows, and checked afterwards. If
    something was redacted or erased meanwhile, that alone may explain the problems, so everything is checked again.
    Holds one turn in memory.
    """
    own = set(Prompt.objects.filter(conversation=conversation_id).values_list("pk", flat=True))
    found, chain = Verified(), _new_chain(conversation_id)
    with reporting_errors(found.problems, 0):
        _walk_all(conversation_id, chain, found, own, alive)
    for prompt in sorted(own):
        alive()
        with reporting_errors(found.problems, 0):
            _check_turn(conversation_id, prompt, found.problems, alive)
    if found.problems and _taken_out_since(conversation_id, since=chain):
        return verify(conversation_id, alive)
    found.problems.sort(key=lambda problem: problem.seq)
    return found


def _new_chain(conversation_id: int) -> Chain:
    rows = Redaction.objects.filter(conversation=conversation_id).values_list("seq", "sha256", "left_sha256")
    return Chain({seq: RedactedPayload(*digests) for seq, *digests in rows})


def _taken_out_since(conversation_id: int, since: Chain) -> bool:
    """Whether the conversation was erased, or any of its steps redacted, since this chain was started."""
    redactions = Redaction.objects.filter(conversation=conversation_id).count()
    return redactions != len(since.kept) or not Conversation.objects.filter(pk=conversation_id).exists()


def _walk_all(conversation_id: int, chain: Chain, found: Verified, own: set[int], alive: Alive) -> None:
    """Walk the chain to its end, and check that the conversation's row agrees with it."""
    _walk(conversation_id, chain, found, own, alive)
    with transaction.atomic():  # nobody appends meanwhile
        conversation = _locked(conversation_id)
        own |= set(conversation.prompts.values_list("pk", flat=True))
        _walk(conversation_id, chain, found, own, alive)
    found.problems += chain.end()
    if (conversation.seq, conversation.head) != (chain.seq, chain.head):
        last = f"the conversation's last step is stored as {conversation.seq}, or with another digest"
        found.problems.append(LedgerProblem(chain.seq, last))


def _locked(conversation_id: int) -> Conversation:
    return Conversation.objects.select_for_update(of=("self",)).get(pk=conversation_id)


def _walk(conversation_id: int, chain: Chain, found: Verified, own: set[int], alive: Alive) -> None:
    """Walk the chain to the last step that there is now."""
    steps = StepRow.objects.filter(conversation=conversation_id).order_by("seq")
    while rows := list(steps.filter(seq__gt=chain.seq)[:AT_ONCE]):
        alive()
        for row in rows:
            found.steps += 1
            with reporting_errors(found.problems, row.seq):
                found.problems += chain.add(KeptStep.of(row))
                found.problems += _columns(row, own)


def _columns(row: StepRow, own: set[int]) -> Iterator[LedgerProblem]:
    """Check the columns of a step that the chain does not cover."""
    entry = KeptStep.of(row).step()
    if row.attempt != (entry.payload.get("attempt") if row.type == "action_start" else None):
        yield LedgerProblem(row.seq, f"the column attempt is {row.attempt}, but the payload differs")
    if row.prompt_id not in own:
        yield LedgerProblem(row.seq, f"belongs to prompt {row.prompt_id} of another conversation")


def _check_turn(conversation_id: int, pk: int, problems: list[LedgerProblem], alive: Alive) -> None:
    """Add the problems of one turn. A conversation that was erased meanwhile is not a problem."""
    with transaction.atomic():  # a step, its outputs and its prompt's row are written together
        try:
            conversation = _locked(conversation_id)
            prompt = Prompt.objects.get(pk=pk)
        except (Conversation.DoesNotExist, Prompt.DoesNotExist):
            return
        rows = StepRow.objects.of(prompt).order_by("seq")
        steps = [KeptStep.of(row).step() for row in rows]
        outputs = {row.position: row for row in Output.objects.of(prompt)}
        usage = {row.path: row for row in Usage.objects.filter(conversation_id=conversation_id, prompt_id=pk)}
    problems += problems_of(steps)
    last = steps[-1].id if steps else 0
    for found in (
        _outputs(prompt, steps, outputs),
        _prompt(conversation, prompt, steps),
        _asked(conversation, prompt, steps),
        _usage(conversation, prompt, steps, usage),
    ):
        with reporting_errors(problems, last):
            problems += found
    for step in steps:
        with reporting_errors(problems, step.id):
            problems += _references(conversation, step, alive)


def _outputs(prompt: Prompt, steps: list[Step], rows: dict[int, Output]) -> Iterator[LedgerProblem]:
    """Check that the stored outputs are those of the steps, column by column."""
    expected = fold_outputs(steps)
    for position in sorted(expected.keys() | rows.keys()):
        output, row = expected.get(position), rows.get(position)
        if output is None or row is None:
            yield LedgerProblem(
                position, "an output is stored here that no step opened" if row else "the output is missing"
            )
            continue
        columns = {"conversation_id": prompt.conversation_id, **output_columns(output)}
        if wrong := [name for name, value in columns.items() if getattr(row, name) != value]:
            yield LedgerProblem(position, f"the output differs from its steps: {', '.join(sorted(wrong))}")


def _prompt(conversation: Conversation, prompt: Prompt, steps: list[Step]) -> Iterator[LedgerProblem]:
    """Check that the prompt's row is what its steps add up to, and that it holds the slot while it runs or waits."""
    if not steps:
        yield LedgerProblem(0, f"{prompt} has no steps")
        return
    standing, last = PromptStanding().after(steps), steps[-1].id
    ends = [datetime.fromisoformat(step.time) for step in steps if step.type == "action_result" and not step.path]
    times = {"ended_at": ends[0] if ends else None, "wake_at": _wake_at(standing)}
    for name, value in {**standing.columns(), **times}.items():
        if (stored := getattr(prompt, name)) != value:
            yield LedgerProblem(last, f"{name} of {prompt} is {stored!r}, but its steps say {value!r}")
    holds = conversation.active_prompt_id == prompt.pk
    if standing.ended and holds:
        yield LedgerProblem(last, f"{prompt} has ended and still holds the slot")
    if standing.state in OPEN and not holds:
        yield LedgerProblem(last, f"{prompt} has begun and does not hold the slot")


def _wake_at(standing: PromptStanding) -> datetime | None:
    at = standing.wake_at
    return None if at is None or at == UNCHANGED else datetime.fromisoformat(at)


def _asked(conversation: Conversation, prompt: Prompt, steps: list[Step]) -> Iterator[LedgerProblem]:
    """Check that the prompt's row and the turn's call agree on what was asked, how and by whom.

    Values are not quoted: problems are logged, and one of the values is a message.
    """
    call = next((step for step in steps if step.type == "action_call" and not step.path), None)
    if call is None:
        return
    site, words = site_of(call), words_of(call)
    expected = {
        "input": words,
        "tier": site["tier"],
        "origin": call.payload["origin"],
        "policy": call.payload["policy"],
        "continues_id": site.get("continues"),
        "repeats_id": site.get("repeats"),
        "reminder": site.get("reminder"),
    }
    wrong = [name for name, value in expected.items() if getattr(prompt, name) != value]
    own = prompt.origin != Origin.TRIGGER or prompt.asked_by_id == conversation.owner_id  # a trigger is its owner's
    if not wrong and not (own and call.actor == prompt.asker):  # which is read from the same columns
        wrong.append("asked_by_id")
    if wrong:
        yield LedgerProblem(call.id, f"{prompt} differs from its call: {', '.join(wrong)}")


def _usage(
    conversation: Conversation, prompt: Prompt, steps: list[Step], rows: dict[str, Usage]
) -> Iterator[LedgerProblem]:
    """Check that the usage of each answer is counted."""
    answers = {step.path: step for step in steps if answer_usage(step) is not None}
    for path in sorted(answers.keys() | rows.keys()):
        step, row = answers.get(path), rows.get(path)
        if step is None or row is None:
            said = "was counted, but never given" if row else "is not counted"
            yield LedgerProblem(step.id if step else 0, f"the answer at {path} of {prompt} {said}")
            continue
        used = answer_usage(step) or {}
        costs, place = step.payload.get("cost_nano_usd"), conversation.pk
        expected = {**used, "cost_nano_usd": costs, "conversation_id": place}
        if wrong := [name for name, value in expected.items() if getattr(row, name) != value]:
            yield LedgerProblem(
                step.id, f"the usage of the answer at {path} is counted wrongly: {', '.join(sorted(wrong))}"
            )


def _references(conversation: Conversation, step: Step, alive: Alive) -> Iterator[LedgerProblem]:
    """Check that snapshots and files that a step names exist with their content. Redacted ones may be gone."""
    if step.type == "action_start" and (name := step.payload.get("snapshot")):
        text = Snapshot.objects.filter(pk=name).values_list("text", flat=True).first()
        gone = text is None and step.payload.get(MARK)
        if not gone and (text is None or sha256(text) != name):
            yield LedgerProblem(step.id, f"the snapshot {name[:12]} is missing, or differs from what the model saw")
    elif step.payload.get(MARK):
        yield from _redacted_files(step)
    elif step.type == "file":
        yield from _file(conversation, step, int(step.payload.get("file", 0)), alive)
    elif step.type == "action_call" and not step.path:
        yield from _uploads(conversation, step, alive)


def _redacted_files(step: Step) -> Iterator[LedgerProblem]:
    """Check that no file is left that a redacted step names."""
    root = step.type == "action_call" and not step.path
    named = [step.payload] if step.type == "file" else site_of(step).get("files", []) if root else []
    for pk in [int(each.get("file") or each.get("id") or 0) for each in named if isinstance(each, dict)]:
        if File.objects.filter(pk=pk).exists():
            yield LedgerProblem(step.id, f"was redacted, but the file {pk} still exists")


def _uploads(conversation: Conversation, step: Step, alive: Alive) -> Iterator[LedgerProblem]:
    """Check the files that were uploaded with the message."""
    try:
        given = Attachment.recorded_in(site_of(step))
    except (TypeError, KeyError):
        yield LedgerProblem(step.id, "its list of files cannot be read")
        return
    for file in given:
        yield from _file(conversation, step, file.id, alive, name=file.name, size=file.size, path=file.path)


def _file(conversation: Conversation, step: Step, pk: int, alive: Alive, **told: object) -> Iterator[LedgerProblem]:
    """Check that the file exists with its content, and that its columns are as the step told."""
    row = File.objects.filter(conversation=conversation, pk=pk).first()
    if row is None:
        yield LedgerProblem(step.id, f"the file {pk} is missing")
        return
    if wrong := [name for name, value in told.items() if getattr(row, name) != value]:
        yield LedgerProblem(step.id, f"the file {row.pk} differs from what the step says: {', '.join(wrong)}")
    try:
        with row.content.open() as content:
            digest = _sha256_of(content, alive)
    except OSError:
        yield LedgerProblem(step.id, f"the content of the file {row.pk} is missing")
        return
    if digest != row.sha256:
        yield LedgerProblem(step.id, f"the content of the file {row.pk} is not what was stored")


def _sha256_of(content: FieldFile, alive: Alive) -> str:
    digest = hashlib.sha256()
    for piece in content.chunks(CHUNK):
        alive()
        digest.update(piece)
    return digest.hexdigest()
