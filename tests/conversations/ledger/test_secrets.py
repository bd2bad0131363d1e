"""The site's secrets in messages, decisions, drafts, and edits of files that contain one (C20)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from agents.engine.secrets import keep_secret
from agents.plugins.files.tools import edit_file
from conversations.approvals.decisions import Conflict, decide
from conversations.files.workspaces import folder_of
from conversations.models import Draft, Output, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from tests.conversations.questions import asked
from tests.conversations.recorded import Site, pending, taken
from tests.conversations.support import asking
from tests.conversations.worker.test_drafts import Failing, write
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

SECRET = "sk-canary-4711-model"


@pytest.fixture(autouse=True)
def _one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.engine.secrets._known", [])
    keep_secret([SECRET])


def kept() -> str:
    """All that the record and the drafts hold."""
    rows = [*Row.objects.values_list("payload"), *Output.objects.values_list(), *Draft.objects.values_list("text")]
    return str(rows)


def test_a_key_that_somebody_types_is_hidden(ann: User) -> None:
    prompt = start_prompt(start_conversation(ann), ann, f"My key is {SECRET}!", key="k")
    assert prompt.input == "My key is [secret]!"
    assert start_prompt(prompt.conversation, ann, f"My key is {SECRET}!", key="k").pk == prompt.pk
    cancel_prompt(prompt.pk, ann, f"Not {SECRET}.")
    prompt.conversation.refresh_from_db()
    assert SECRET not in kept() + prompt.conversation.title
    assert "Not [secret]." in kept()


def test_a_decision_tells_none(ann: User, site: Site) -> None:
    """Neither its reason nor an answer; the same words again give the first result."""
    _, gate = asking(ann)
    decide(gate.pk, ann, "reject", digest=gate.digest, via="page", reason=f"It tells {SECRET}.")
    _, question = asked(site, ann, "Which?")
    for _ in range(2):
        decide(question.pk, ann, "answer", digest=question.digest, via="page", answer=f"It is {SECRET}.")
    assert SECRET not in kept()
    assert "It is [secret]." in kept()


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_draft_never_tells_one(ann: User, cut: int) -> None:
    """Not in two pieces either, wherever it is cut, nor where the database fails between them."""
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    drafts = Drafts(Failing([OperationalError("gone")] if cut % 2 else []))
    growing = drafts.of(taken(prompt))
    growing.add("1", f"Key: {SECRET[:cut]}", 1)
    while not write(drafts):
        pass
    assert Draft.objects.get().text == "Key: "
    growing.add("1", f"{SECRET[cut:]}, s", 1)
    write(drafts)
    assert Draft.objects.get().text == "Key: [secret], "
    growing.add("1", "o.", 1)
    write(drafts)
    draft = Draft.objects.get()
    assert (draft.text, draft.size) == ("Key: [secret], so.", len("Key: [secret], so."))


@pytest.fixture
def desk(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> Site:
    """A site whose agent edits files."""
    settings.AGENTSITE_WORKSPACES = tmp_path
    monkeypatch.setattr(site.world, "tools", lambda: [edit_file])
    return site


def test_an_edit_of_a_file_that_holds_one_can_be_decided(desk: Site, ann: User) -> None:
    """What the worker showed and what this process shows are one; the file keeps its key (I6)."""
    conversation = start_conversation(ann)
    file = folder_of(conversation.pk) / "conf"
    file.write_text(f"key = {SECRET}\ndebug = 1\n")
    asked = call("files.edit", path="conf", old="debug = 1", new="debug = 0")
    prompt = desk.runs(ann, says("", asked), says("Done."), conversation=conversation)
    (gate,) = pending(prompt)
    mine = {"path": "conf", "old": "debug = 1", "new": f"debug = 2  # not {SECRET}"}
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input=mine)
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input=mine)  # the same again
    desk.works()
    assert file.read_text() == f"key = {SECRET}\ndebug = 2  # not [secret]\n"
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert SECRET not in kept()
    assert verify(prompt.conversation_id).problems == []


def test_what_holds_now_is_told_without_it(desk: Site, ann: User) -> None:
    """The file is another by now: the refusal tells its text, without the secret."""
    conversation = start_conversation(ann)
    file = folder_of(conversation.pk) / "conf"
    file.write_text("debug = 1\n")
    asked = call("files.edit", path="conf", old="debug = 1", new="debug = 0")
    (gate,) = pending(desk.runs(ann, says("", asked), says("Done."), conversation=conversation))
    file.write_text(f"key = {SECRET}\ndebug = 1\n")
    mine = {"path": "conf", "old": "debug = 1", "new": "debug = 2"}
    with pytest.raises(Conflict) as refused:
        decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input=mine)
    assert refused.value.code == "facts_changed"
    assert "key = [secret]" in str(refused.value.details)
    assert SECRET not in str(refused.value.details)
