"""The site's secrets in what people and administrators write: no row holds them, and no model reads them (C20)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.engine.secrets import HIDDEN, keep_secret
from agents.models import SystemPrompt
from conversations.files.uploads import Upload
from conversations.models import Conversation, File, KillSwitch, Snapshot, Step
from conversations.prompts.killswitch import turn_on
from conversations.prompts.listing import rename
from conversations.prompts.start import cancel_prompt, repeat_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, meddle
from tests.engine.support import says

pytestmark = pytest.mark.django_db
CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def _secret() -> Iterator[None]:
    keep_secret([CANARY])
    yield
    keep_secret([])


def test_a_system_prompt_tells_none(site: Site, ann: User) -> None:
    """Neither the step that starts the turn nor what the model was told holds it."""
    SystemPrompt.create(name="Keys", text=f"The key is {CANARY}.", is_default=True)
    prompt = site.ended(ann, says("Hello."))
    begun = Step.objects.get(prompt=prompt, path="", type="action_call").content
    assert begun["payload"]["system"]["text"] == f"The key is {HIDDEN}."
    assert any(HIDDEN in snapshot.text for snapshot in Snapshot.objects.all())
    assert not [each.pk for each in Snapshot.objects.all() if CANARY in each.text]


def test_a_file_is_not_named_after_one(site: Site, ann: User) -> None:
    given = Upload.of(SimpleUploadedFile(f"{CANARY}.txt", b"x", "text/plain"))
    start_prompt(start_conversation(ann), ann, "Look.", files=[given])
    assert File.objects.get().name == f"{HIDDEN}.txt"
    assert CANARY not in Step.objects.get().payload


def test_a_title_tells_none(ann: User) -> None:
    conversation = start_conversation(ann, f"About {CANARY}")
    assert conversation.title == f"About {HIDDEN}"
    rename(conversation, f"Of {CANARY}")
    assert Conversation.objects.get().title == f"Of {HIDDEN}"


def test_a_message_that_is_asked_again_tells_none(ann: User) -> None:
    """Not where the secret became one after it was said; and the turn is what its call says."""
    keep_secret([])
    old = start_prompt(start_conversation(ann), ann, f"The key is {CANARY}.")
    cancel_prompt(old.pk, ann)
    keep_secret([CANARY])
    again = repeat_prompt(old.pk, ann)
    assert again.input == f"The key is {HIDDEN}."
    assert verify(again.conversation_id).problems == []


def test_a_reason_to_stop_all_work_tells_none(site: Site, ann: User) -> None:
    prompt = site.starts(ann, says("Hello."))
    meddle("UPDATE conversations_prompt SET state = 'running', lease_until = 1 WHERE id = %s", [prompt.pk])
    turn_on(None, f"{CANARY} leaked.")
    assert KillSwitch.objects.get().reason == f"{HIDDEN} leaked."
    assert Step.objects.get(type="cancel").content["reason"] == f"Kill switch: {HIDDEN} leaked."
