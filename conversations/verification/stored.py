"""What the database holds of a conversation, against the steps of its ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from agents.engine.attached import Attached
from agents.engine.ledger import JSON, canonical
from agents.engine.ledger import Step as Entry
from agents.engine.provider import USAGE
from conversations.journal import CHANGING, link, output_columns
from conversations.models import Conversation, File, Output, Prompt, Snapshot, State, Step
from conversations.standing import Standing
from conversations.verification.rules import Problem, folded, problems_of


@dataclass
class Verified:
    """How many steps were looked at, and what is wrong with them."""

    steps: int = 0
    problems: list[Problem] = field(default_factory=list)


def verify(conversation_id: int) -> Verified:
    """All that a conversation's ledger promises, checked at one moment of it. Raises Conversation.DoesNotExist."""
    with (
        transaction.atomic()
    ):  # nobody appends meanwhile: a step, its outputs and its prompt's row are written together
        conversation = Conversation.objects.select_for_update(of=("self",)).get(pk=conversation_id)
        rows = list(Step.objects.filter(conversation=conversation).order_by("seq"))
        found = Verified(len(rows), list(_chain(conversation, rows)))
        for prompt in conversation.prompts.order_by("pk"):
            steps = [_entry(row) for row in rows if row.prompt_id == prompt.pk]
            found.problems += [*problems_of(steps), *_outputs(prompt, steps), *_prompt(conversation, prompt, steps)]
            found.problems += _named(conversation, steps)
    found.problems.sort(key=lambda problem: problem.seq)
    return found


def _entry(row: Step) -> Entry:
    try:
        payload = json.loads(row.payload)
    except ValueError:
        payload = {}  # the chain says what is wrong with it
    return Entry(row.actor, row.type, payload, row.path, row.seq, row.time.astimezone(UTC).isoformat())


def _chain(conversation: Conversation, rows: list[Step]) -> Iterator[Problem]:
    """Steps count from 1 without a gap, and each carries the digest of all before it. A break is told once."""
    head, seq = "", 0
    own = set(conversation.prompts.values_list("pk", flat=True))
    for row in rows:
        entry = _entry(row)
        if row.seq != seq + 1:
            yield Problem(row.seq, f"follows on step {seq}: there is a gap")
        if row.digest != link(head, entry, row.prompt_id, row.payload):
            yield Problem(row.seq, "the chain is broken: this step, or the one before it, is not what was recorded")
        if canonical(entry.payload) != row.payload:
            yield Problem(row.seq, "the payload is no canonical JSON")
        if row.attempt != (entry.payload.get("attempt") if row.type == "action_start" else None):
            yield Problem(row.seq, f"the column attempt says {row.attempt}, the payload does not")
        if row.prompt_id not in own:
            yield Problem(row.seq, f"belongs to prompt {row.prompt_id} of another conversation")
        head, seq = row.digest, row.seq
    if (conversation.seq, conversation.head) != (seq, head):
        yield Problem(seq, f"the conversation says that its last step is {conversation.seq}, or another one than this")


def _outputs(prompt: Prompt, steps: list[Entry]) -> Iterator[Problem]:
    """The outputs of the steps are the rows, column by column."""
    expected = folded(steps)
    rows = {row.position: row for row in Output.objects.filter(prompt=prompt)}
    for position in sorted(expected.keys() | rows.keys()):
        output, row = expected.get(position), rows.get(position)
        if output is None or row is None:
            yield Problem(position, "an output stands here that no step opened" if row else "the output is missing")
            continue
        columns = {"path": output.path, "parent": output.parent, "type": output.type, **output_columns(output)}
        columns["conversation_id"] = prompt.conversation_id
        if wrong := [name for name, value in columns.items() if getattr(row, name) != _stored(name, value)]:
            yield Problem(position, f"the output differs from its steps: {', '.join(sorted(wrong))}")


def _stored(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if value and name in CHANGING and name.endswith("_at") else value


def _prompt(conversation: Conversation, prompt: Prompt, steps: list[Entry]) -> Iterator[Problem]:
    """The prompt's row is what its steps add up to, and the one that runs or waits holds the slot."""
    if not steps:
        yield Problem(0, f"{prompt} has no steps")
        return
    standing, last = Standing().after(steps), steps[-1].id
    ends = [datetime.fromisoformat(step.time) for step in steps if step.type == "action_result" and not step.path]
    expected: dict[str, JSON] = {
        "state": standing.state or State.QUEUED,
        "stop_reason": standing.stop_reason,
        **{name: standing.counts.get(name, 0) for name in ("rounds", *USAGE)},
        "ended_at": ends[0] if ends else None,
    }
    for name, value in expected.items():
        if (stored := getattr(prompt, name)) != value:
            yield Problem(last, f"{name} of {prompt} is {stored!r}, its steps say {value!r}")
    holds = conversation.active_prompt_id == prompt.pk
    if standing.ended and holds:
        yield Problem(last, f"{prompt} has ended and still holds the slot")
    if standing.state in (State.RUNNING, State.WAITING) and not holds:
        yield Problem(last, f"{prompt} has begun and does not hold the slot")


def _named(conversation: Conversation, steps: list[Entry]) -> Iterator[Problem]:
    """What steps name is there, with the content it had: snapshots and files."""
    for step in steps:
        if step.type == "action_start" and (name := step.payload.get("snapshot")):
            text = Snapshot.objects.filter(pk=name).values_list("text", flat=True).first()
            if text is None or hashlib.sha256(text.encode()).hexdigest() != name:
                yield Problem(step.id, f"the snapshot {name[:12]} is missing, or not what the model saw")
        elif step.type == "file":
            yield from _file(conversation, step, File(pk=int(step.payload.get("file", 0))))
        elif step.type == "action_call" and not step.path:
            yield from _given(conversation, step)


def _given(conversation: Conversation, step: Entry) -> Iterator[Problem]:
    """The files that came with what was said."""
    try:
        given = Attached.of(step.payload["payload"])
    except (TypeError, KeyError):
        yield Problem(step.id, "what it says of its files cannot be read")
        return
    for file in given:
        named = File(pk=file.id, name=file.name, size=file.size, path=file.path)
        yield from _file(conversation, step, named, "name", "size", "path")


def _file(conversation: Conversation, step: Entry, named: File, *told: str) -> Iterator[Problem]:
    """The file that a step names is there, with its content; what the step tells of it is true."""
    row = File.objects.filter(conversation=conversation, pk=named.pk).first()
    if row is None:
        yield Problem(step.id, f"the file {named.pk} is missing")
        return
    if wrong := [name for name in told if getattr(row, name) != getattr(named, name)]:
        yield Problem(step.id, f"the file {row.pk} differs from what was said of it: {', '.join(wrong)}")
    try:
        with row.content.open() as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        yield Problem(step.id, f"the content of the file {row.pk} is missing")
        return
    if digest != row.sha256:
        yield Problem(step.id, f"the content of the file {row.pk} is not what was stored")
