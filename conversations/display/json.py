"""The record as JSON for programs, the same in the API, in events and over sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.urls import reverse

from agents.engine.actors import Actor, Kind
from agents.engine.ledger import JSON
from agents.engine.outputs.kinds import FileOutput, Output, ToolOutput
from agents.engine.outputs.timeline import reading_order
from conversations.models import Conversation, File, Prompt, Step
from conversations.models import Output as OutputRow
from conversations.usage.totals import NOTHING, Spent, of_conversations, of_prompts, spent_json

INTERNAL = {"approval": {"path", "proposed"}}
"""The fields of a gate that programs do not get."""


def output_json(entry: Output, row: int, files: Mapping[int, File]) -> dict[str, JSON]:
    """Return one output. `row` is its id, by which it is decided; `files` the rows of the files that outputs name."""
    hidden = INTERNAL if isinstance(entry, ToolOutput) else None  # a kind of a plugin may have an `approval` of its own
    shown: dict[str, JSON] = {"id": row, **entry.model_dump(mode="json", exclude=hidden)}
    if isinstance(entry, ToolOutput) and (gate := entry.approval):
        shown["approval"] |= {"title": gate.title, "preview": gate.preview}
        if Actor.parse(gate.decided_by).kind == Kind.RULE:
            shown["approval"]["by_rule"] = gate.decided_by
    if isinstance(entry, FileOutput):
        shown["file"] = file_json(files[entry.file]) if entry.file in files else None
        del shown["name"]  # the file's
    return shown


def file_json(file: File) -> dict[str, JSON]:
    """Return one file, with its download URL."""
    return {
        "id": file.pk,
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "sha256": file.sha256,
        "url": reverse("api-file", args=[file.pk]),
    }


def outputs_json(prompt: Prompt) -> list[dict[str, JSON]]:
    """Return the outputs of a prompt in reading order, as they are now."""
    rows = OutputRow.objects.of(prompt)
    ids = {row.position: row.pk for row in rows}
    entries = [row.entry() for row in rows]
    files = files_of(entries)
    return [output_json(entry, ids[entry.position], files) for entry in reading_order(entries)]


def files_of(entries: Iterable[Output]) -> dict[int, File]:
    """Return the rows of the files that these outputs name, by id."""
    return File.objects.in_bulk({entry.file for entry in entries if isinstance(entry, FileOutput)})


def usage_json(prompt: Prompt) -> dict[str, JSON]:
    """Return what a prompt has used so far: tokens, their cost if it is known, and the models that answered."""
    return spent_json(of_prompts([prompt.conversation_id], [prompt.pk]).get(prompt.pk, NOTHING))


def prompt_head(prompt: Prompt) -> dict[str, JSON]:
    """Return one prompt without its outputs."""
    return {
        "id": prompt.pk,
        "conversation": prompt.conversation_id,
        "number": prompt.number,
        "state": prompt.state,
        "stop_reason": prompt.stop_reason,
        "policy": prompt.policy,
        "input": prompt.input,
        "files": [file_json(file) for file in prompt.files.all()],
        "model": prompt.tier,
        "origin": prompt.origin,
        "visible": prompt.visible,
        "continues": prompt.continues_id,
        "repeats": prompt.repeats_id,
        "created_at": prompt.created_at.isoformat(),
        "wake_at": prompt.wake_at.isoformat() if prompt.wake_at else None,
        "ended_at": prompt.ended_at.isoformat() if prompt.ended_at else None,
    }


def prompt_json(prompt: Prompt) -> dict[str, JSON]:
    """Return one prompt with its outputs. Its `seq` is the seq of its last step: later events bring what is new.

    Its first start recorded when it started, and how many rounds it may use. Before that, it is the site's limit.
    """
    steps = Step.objects.of(prompt)
    last = steps.order_by("-seq").values_list("seq", flat=True).first()
    start = steps.filter(path="", type="action_start").order_by("seq").first()
    limits = (start.content.get("limits") if start else None) or {"rounds": settings.AGENTSITE_MAX_ROUNDS}
    return {
        **prompt_head(prompt),
        "started_at": start.time.isoformat() if start else None,
        "pauses": prompt.pauses,
        "rounds": {"used": prompt.rounds, "granted": limits["rounds"]},
        "outputs": outputs_json(prompt),
        "usage": usage_json(prompt),
        "seq": last or 0,
    }


def conversation_json(conversation: Conversation) -> dict[str, JSON]:
    """Return one conversation. `active_prompt` is the running or waiting turn, `page` the URL of its page."""
    return conversations_json([conversation])[0]


def conversations_json(conversations: Sequence[Conversation]) -> list[dict[str, JSON]]:
    """Return several conversations with their usage, which is looked up once for all."""
    spent = of_conversations([conversation.pk for conversation in conversations])
    return [_conversation(each, spent.get(each.pk, NOTHING)) for each in conversations]


def _conversation(conversation: Conversation, spent: Spent) -> dict[str, JSON]:
    chosen = conversation.system_prompt
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "system_prompt": {"id": chosen.pk, "name": chosen.name} if chosen else None,
        "active_prompt": conversation.active_prompt_id,
        "archived": conversation.archived_at is not None,
        "seq": conversation.seq,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "usage": spent_json(spent),
        "page": conversation.get_absolute_url(),
    }


def gate_json(output: OutputRow) -> dict[str, JSON]:
    """Return one output with a gate, with its conversation, its prompt and its owner."""
    return {
        **output_json(output.entry(), output.pk, {}),
        "conversation": output.conversation_id,
        "prompt": output.prompt_id,
        "owner": output.conversation.owner.get_username(),
    }


def step_json(step: Step) -> dict[str, JSON]:
    """Return one step of the ledger, as it is recorded."""
    return {
        "seq": step.seq,
        "path": step.path,
        "actor": step.actor,
        "type": step.type,
        "payload": step.content,
        "time": step.time.isoformat(),
        "digest": step.digest,
    }
