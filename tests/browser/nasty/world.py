"""What the people of the site did: run by `manage.py shell` of their site, against its worker and its model."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import Blueprint, Skill, SystemPrompt
from conversations.accounts.keys import make_key
from conversations.approvals.decisions import decide
from conversations.files.uploads import read_uploads
from conversations.models import Conversation, Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from tests.agentsite.processes import wait_for
from tests.browser.nasty.turns import FAILS, WAITS, name_of
from tests.texts import TEXTS, short
from workflows import discovery
from workflows.batches.starting import start_batch
from workflows.running import start_run


def fill() -> dict[str, Any]:
    """Use every text everywhere. Returns the prompts and conversations of each, and the batch."""
    ann = User.objects.get(username="ann")
    made = {name: begun(ann, name, text) for name, text in TEXTS.items()}
    batch = start_batch(
        discovery.installed()["nasty.return"], ann, [{"text": text, "texts": [text]} for text in TEXTS.values()]
    )
    for name, text in TEXTS.items():
        settled(ann, made[name], text)
    where = {
        name: {kind: Prompt.objects.get(pk=pk).conversation_id for kind, pk in prompts.items()}
        for name, prompts in made.items()
    }
    return {"prompts": made, "conversations": where, "batch": batch.pk}


def begun(ann: User, name: str, text: str) -> dict[str, int]:
    """The turns of one text, all under way, and what is named by it."""
    line = short(text)
    User.objects.create_superuser(f"user-{name}", first_name=line, last_name=short(text, 150), email="x@example.com")
    SystemPrompt.create(name=line, text=text)
    Blueprint.objects.create(name=line, when=short(text, 1024), text=text, tags=[line], enabled=False)
    Skill.objects.create(name=name, description=short(text, 1024), body=text, enabled=False)
    make_key(ann, line, ["read"])
    installed = discovery.installed()
    files = read_uploads([SimpleUploadedFile(f"{name_of(text)}.txt", text.encode(), "text/plain")])
    given = {"text": text, "texts": [text, line]}
    prompts = {
        "waits": start_prompt(start_conversation(ann, text), ann, WAITS[name], files=files),
        "fails": start_prompt(start_conversation(ann, text), ann, FAILS[name]),
        "run-asks": start_run(installed["nasty.ask"], ann, given),
        "run-done": start_run(installed["nasty.return"], ann, given),
        "run-failed": start_run(installed["nasty.fail"], ann, given),
    }
    return {kind: prompt.pk for kind, prompt in prompts.items()}


def settled(ann: User, prompts: dict[str, int], text: str) -> None:
    """All have come to where they end or wait; what asks in the turn that fails was rejected, with a reason."""
    states = {"waits": "waiting_for_approval", "run-asks": "waiting_for_approval", "fails": "waiting_for_approval"}
    states |= {"run-done": "completed", "run-failed": "failed"}
    for kind, state in states.items():
        turn = Prompt.objects.filter(pk=prompts[kind], state=state)
        wait_for(turn.exists)
    asked = Output.objects.get(prompt=prompts["fails"], gate="pending")
    decide(asked.pk, ann, "reject", digest=asked.digest, via="page", reason=short(text, 1_000))
    wait_for(lambda: Prompt.objects.get(pk=prompts["fails"]).state == "failed")
    Conversation.objects.filter(pk=Prompt.objects.get(pk=prompts["waits"]).conversation_id).update(seen_seq=0)
