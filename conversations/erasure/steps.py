"""Redaction: removing the content of steps from a ledger, while the steps themselves stay.

The chain is computed over the sha256 of each payload. A `Redaction` row keeps that digest and the digest of what is
left, so the ledger still verifies. A short secret can be guessed from its digest: treat it as no longer secret.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q, QuerySet

from agents.engine.errors import ToolError
from agents.engine.ledger import canonical
from agents.engine.paths import ancestors, is_gate, join, parent
from agents.engine.root import AGENT
from agents.engine.secrets import hide
from agents.engine.view import opens_gate
from agents.plugins.files.box import Box
from conversations.database.hints import hint_changed
from conversations.erasure.conversations import delete_unused_snapshots
from conversations.files.workspaces import folder_of
from conversations.ledger.reading import read_steps
from conversations.ledger.redacted import (
    COPY_LEAST,
    PLACEHOLDER,
    KeptStep,
    contains_any,
    has_content,
    is_redacted,
    redacted,
    sha256,
    texts,
)
from conversations.ledger.rows import output_columns
from conversations.models import Conversation, Delivery, Draft, File, Grant, Output, Payload, Prompt, Redaction, Step
from conversations.prompts.titles import title_from
from conversations.verification.rules import fold_outputs

if TYPE_CHECKING:
    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)


class NotRedacted(Exception):
    """Nothing was redacted. The message says why, and what to do."""


@dataclass
class Redacted:
    """The steps that were redacted, by seq, and the steps that still contain a text that was in one of them."""

    seqs: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)


def redact(conversation: Conversation, seqs: Collection[int], by: User, reason: str) -> Redacted:
    """Remove the content of these steps, and of the steps that repeat it.

    A call takes along its gates, its cards and their decisions, a question its answers; a message, the turns that
    repeat it and their snapshots, unless another turn uses these; text of a model, its opaque items. Everything derived
    changes in the same transaction: outputs, the prompt's input, the title, drafts, files, what a webhook brought, what
    webhooks were told, and grants that were given with these decisions. What stays: kinds, names of tools, decisions,
    codes, times, numbers, digests; backups, and what a tool put into the workspace.
    Copies are searched for after the commit, when nobody is kept waiting.
    Raises NotRedacted if a step does not exist, has no content, or its turn has not ended; Conversation.DoesNotExist.
    """
    with transaction.atomic():
        locked = Conversation.objects.select_for_update(of=("self",)).get(pk=conversation.pk)
        rows = _with_copies(locked, _named(locked, seqs))
        prompts = list(Prompt.objects.filter(pk__in={row.prompt_id for row in rows}).order_by("pk"))
        if running := [str(prompt) for prompt in prompts if not prompt.ended]:
            raise NotRedacted(f"{running[0]} has not ended. Stop it first.")
        before = {row.seq: row.payload for row in rows}
        after = _replace(rows, by, reason)
        roots = {row.prompt_id for row in rows if row.type == "action_call" and not row.path}
        _redact_inputs(locked, [prompt for prompt in prompts if prompt.pk in roots])
        _delete_files(rows, roots, locked)
        Payload.objects.filter(firing__prompt__in=roots).delete()
        _delete_grants(rows)
        Draft.objects.of(*prompts).delete()
        Delivery.objects.filter(prompt__conversation=locked).delete()  # the title may be a redacted message's
        for prompt in prompts:
            _fold_again(prompt)
        hint_changed(locked.pk)
        delete_unused_snapshots({row.content["snapshot"] for row in rows if _names_snapshot(row)})
    return Redacted(sorted(before), _copies(conversation, before, after))


def _named(conversation: Conversation, seqs: Collection[int]) -> list[Step]:
    """Return the steps with these numbers. Raises NotRedacted."""
    found = {row.seq: row for row in Step.objects.filter(conversation=conversation, seq__in=seqs)}
    for seq in sorted(set(seqs)):
        if seq not in found:
            raise NotRedacted(f"Conversation {conversation.pk} has no step {seq}.")
        if not _can_be_redacted(found[seq]):
            raise NotRedacted(f"Step {seq} has no content, or was redacted before.")
    if not found:
        raise NotRedacted("Name at least one step.")
    return list(found.values())


def _with_copies(conversation: Conversation, named: list[Step]) -> list[Step]:
    """Return these steps, and those that repeat their content because of how turns are recorded."""
    wanted = Q(pk__in=[row.pk for row in named])
    roots = {row.prompt_id for row in named if row.type == "action_call" and not row.path}
    for prompt in _repetitions(conversation, roots):
        wanted |= Q(prompt=prompt, path="", type="action_call")
        wanted |= Q(prompt=prompt, type="action_start", payload__contains='"snapshot":')
    for row in named:
        for path, types in _repeated(row):
            wanted |= Q(prompt=row.prompt_id, path=path, type__in=types)
    rows = Step.objects.filter(conversation=conversation).filter(wanted).order_by("seq")
    return [row for row in rows if _can_be_redacted(row)]


def _can_be_redacted(row: Step) -> bool:
    return has_content(KeptStep.of(row)) or (_names_snapshot(row) and not is_redacted(row.payload))


def _names_snapshot(row: Step) -> bool:
    return row.type == "action_start" and "snapshot" in row.content


def _repetitions(conversation: Conversation, roots: set[int]) -> set[int]:
    """Return these turns, with all that repeat them and that they repeat: they have the same message.

    So has a turn that continues that of another policy than the agent: its payload is the same.
    """
    pairs = list(conversation.prompts.exclude(repeats=None).values_list("pk", "repeats"))
    pairs += conversation.prompts.exclude(continues=None).exclude(policy=AGENT).values_list("pk", "continues")
    while more := {each for pair in pairs if roots & set(pair) for each in pair if each is not None} - roots:
        roots = roots | more
    return roots


def _repeated(row: Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield where the content of this step is repeated: paths, and the types of the steps there."""
    base = parent(row.path) if is_gate(row.path) and parent(row.path) else row.path
    asked = _is_question(row, base)
    if row.path and (row.type == "action_call" or base != row.path or asked):
        yield base, ("action_call", "action_result") if asked else ("action_call",)
        for gate in _gates(row, base):
            yield gate, ("action_call", "action_result")
    if row.actor == "model":
        answer = parent(base) if row.type == "action_call" else row.path
        yield answer, ("action_result",)  # its opaque items
        if row.type == "text":
            for path in ancestors(parent(answer)):  # the text of an agent is its caller's result
                if path:
                    yield path, ("action_result",)


def _is_question(row: Step, path: str) -> bool:
    """Whether a policy's question to a person stands at this path: its decision is its result."""
    calls = Step.objects.filter(conversation=row.conversation_id, prompt=row.prompt_id, path=path, type="action_call")
    return any(opens_gate(KeptStep.of(call).step()) for call in calls)


def _gates(row: Step, call: str) -> list[str]:
    """Return the paths of the call's gate and of its cards, one for each interrupted attempt."""
    below = Step.objects.filter(conversation=row.conversation_id, prompt=row.prompt_id, type="action_call")
    below = below.filter(path__startswith=join(call, ""))
    return [path for path in below.values_list("path", flat=True) if is_gate(path) and parent(path) == call]


def _replace(rows: Collection[Step], by: User, reason: str) -> list[str]:
    """Record who redacts what, which makes the ledger's triggers allow it, and replace it; return the new payloads."""
    payloads = [redacted(KeptStep.of(row)) for row in rows]
    for row, payload in zip(rows, payloads, strict=True):
        digests = {"sha256": sha256(row.payload), "left_sha256": sha256(payload)}
        named = {"redacted_by": by.get_username(), "reason": hide(reason)}
        Redaction.objects.create(conversation_id=row.conversation_id, seq=row.seq, **digests, **named)
        QuerySet(Step).filter(pk=row.pk).update(payload=payload)  # a plain QuerySet: the model's own refuses
    return payloads


def _delete_files(rows: Iterable[Step], roots: Collection[int], conversation: Conversation) -> None:
    """Delete the files that these steps name or these turns brought: rows now, contents after the commit."""
    made = [int(row.content.get("file", 0)) for row in rows if row.type == "file"]
    files = list(File.objects.filter(Q(pk__in=made) | Q(prompt__in=roots), conversation=conversation))
    File.objects.filter(pk__in=[file.pk for file in files]).delete()
    transaction.on_commit(partial(_remove, files))


def _delete_grants(rows: Iterable[Step]) -> None:
    """Delete the grants that were given with these decisions: their conditions have words of the call."""
    for row in rows:
        if row.type == "action_result" and is_gate(row.path):
            Grant.objects.filter(prompt=row.prompt_id, path=parent(row.path)).delete()


def _remove(files: Iterable[File]) -> None:
    for file in files:
        if not File.objects.filter(content=file.content.name).exists():  # another row may name the same content
            file.content.delete(save=False)
        if file.path:
            try:
                Box(folder_of(file.conversation_id)).remove(file.path)
            except (ToolError, OSError):
                logger.exception("a redacted file is still in the workspace: %r", file.path)


def _redact_inputs(conversation: Conversation, prompts: Iterable[Prompt]) -> None:
    """Replace the message in the prompts' rows, and the conversation's title if it was made from one of them."""
    for prompt in prompts:
        sources = [prompt.input, prompt.reminder, *prompt.files.order_by("pk").values_list("name", flat=True)]
        if conversation.title in {title_from(text) for text in sources if text}:
            Conversation.objects.filter(pk=conversation.pk).update(title=PLACEHOLDER)
        Prompt.objects.filter(pk=prompt.pk, input__gt="").update(input=PLACEHOLDER, from_client={})
        Prompt.objects.filter(pk=prompt.pk, reminder__gt="").update(reminder=PLACEHOLDER)


def _fold_again(prompt: Prompt) -> None:
    """Fold the turn's steps again and update the stored outputs."""
    for position, output in fold_outputs(read_steps(prompt.conversation_id, prompt.pk)).items():
        Output.objects.of(prompt).filter(position=position).update(**output_columns(output))


def _copies(conversation: Conversation, before: dict[int, str], after: Iterable[str]) -> list[int]:
    """Return the steps that still contain a redacted text; payloads by seq `before`, and all payloads `after`."""
    gone = _texts(before.values()) - _texts(after)
    if not gone:
        return []
    holds = contains_any({canonical(text)[1:-1] for text in gone})
    steps = Step.objects.filter(conversation=conversation).order_by("seq").values_list("seq", "payload")
    return [seq for seq, payload in steps.iterator() if seq not in before and holds(payload)]


def _texts(payloads: Iterable[str]) -> set[str]:
    return {text for payload in payloads for text in texts(json.loads(payload)) if len(text) >= COPY_LEAST}
