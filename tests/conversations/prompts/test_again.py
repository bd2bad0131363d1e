"""Asking a turn again: a new one with the same message, which names the old one."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.erasure.steps import redact
from conversations.files.uploads import ReusedFiles, Upload
from conversations.models import Origin, Prompt, State, Step
from conversations.prompts import start
from conversations.prompts.start import (
    BadInput,
    TurnInProgress,
    cancel_prompt,
    repeat_prompt,
    start_conversation,
    start_prompt,
)
from conversations.verification.stored import verify
from tests.api.client import error_of, with_key
from tests.conversations.recorded import Site
from tests.conversations.support import Story
from tests.engine.support import says

pytestmark = pytest.mark.django_db


def test_a_completed_turn_is_asked_again_and_both_stay(ann: User, site: Site) -> None:
    old = site.runs(ann, says("Four."), says("Five."))
    assert old.state == State.COMPLETED
    new = repeat_prompt(old.pk, ann)
    assert (new.repeats_id, new.input, new.number) == (old.pk, old.input, old.number + 1)
    assert Step.objects.get(prompt=new, type="action_call", path="").content["payload"]["repeats"] == old.pk
    site.works()
    new.refresh_from_db()
    old.refresh_from_db()
    assert (new.state, old.state) == (State.COMPLETED, State.COMPLETED)
    assert [row.entry().model_dump()["text"] for row in new.outputs.all()] == ["Five."]
    assert verify(new.conversation_id).problems == []


def test_only_the_last_completed_turn_is(ann: User, site: Site) -> None:
    """What came later was said in answer to it. One that was stopped before it began said nothing."""
    old = site.runs(ann, says("Four."), says("Then."))
    unheard = start_prompt(old.conversation, ann, "Never mind.")
    cancel_prompt(unheard.pk, ann)
    again = repeat_prompt(old.pk, ann)
    site.works()
    with pytest.raises(BadInput, match="went on after this turn"):
        repeat_prompt(old.pk, ann)
    assert repeat_prompt(again.pk, ann).repeats_id == again.pk


def test_one_that_failed_is_asked_again_wherever_it_stands(ann: User) -> None:
    story = Story(ann)
    failed = story.ends("failed", "model_error")
    later = Story(ann, conversation=story.conversation)
    later.ends()
    assert repeat_prompt(failed.pk, ann).repeats_id == failed.pk


def test_one_that_runs_or_that_nobody_asked_is_not(ann: User, bob: User) -> None:
    story = Story(ann)
    with pytest.raises(TurnInProgress):
        repeat_prompt(story.prompt.pk, ann)
    story.ends()
    with pytest.raises(Prompt.DoesNotExist):
        repeat_prompt(story.prompt.pk, bob)
    unsaid = start_prompt(story.conversation, ann, None, origin=Origin.API)
    cancel_prompt(unsaid.pk, ann)
    with pytest.raises(BadInput, match="no message to repeat"):
        repeat_prompt(unsaid.pk, ann)


def test_over_the_api(ann: User) -> None:
    story = Story(ann, "What is two and two?")
    story.ends()
    api, address = with_key(ann), f"/api/prompts/{story.prompt.pk}/again/"
    answer = api.post(address, {}, Idempotency_Key="once")
    assert answer.status_code == 201
    assert (answer.json()["repeats"], answer.json()["input"]) == (story.prompt.pk, "What is two and two?")
    assert api.post(address, {}, Idempotency_Key="once").json()["id"] == answer.json()["id"]
    assert error_of(api.post(address), 409)["code"] == "turn_in_progress"


def taken_out(prompt: Prompt, by: User) -> None:
    """Take the message of a turn out of the record."""
    root = Step.objects.get(prompt=prompt, path="", type="action_call")
    redact(prompt.conversation, [root.seq], by, "A password.")


def test_a_message_that_was_taken_out_is_not_asked_again(ann: User, client: Client) -> None:
    """There is nothing to ask: neither on its page nor over the API. What stands in its place is no message."""
    story = Story(ann, "My password is swordfish.")
    old, address = story.ends("failed", "model_error"), f"/prompts/{story.prompt.pk}/again/"
    client.force_login(ann)
    assert f'action="{address}"' in client.get(story.conversation.get_absolute_url()).text
    taken_out(old, ann)
    assert f'action="{address}"' not in client.get(story.conversation.get_absolute_url()).text
    refused = client.post(address)
    assert (refused.status_code, "was redacted" in refused.text) == (409, True)
    assert list(error_of(with_key(ann).post(f"/api{address}"), 400)["fields"]) == ["input"]
    assert Prompt.objects.count() == 1


def test_files_that_were_taken_out_are_not_given_again(ann: User) -> None:
    """Of a message without words nothing else says that it is gone."""
    file = Upload.of(SimpleUploadedFile("secret.txt", b"swordfish", "text/plain"))
    old = start_prompt(start_conversation(ann), ann, "", files=[file])
    cancel_prompt(old.pk, ann)
    taken_out(old, ann)
    with pytest.raises(BadInput, match="was redacted"):
        repeat_prompt(old.pk, ann)


def test_a_message_that_is_taken_out_at_this_moment_does_not_come_back(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Story(ann, "My password is swordfish.").ends()

    def late(earlier: Prompt) -> ReusedFiles:
        taken_out(earlier, ann)
        return ReusedFiles(earlier)

    monkeypatch.setattr(start, "ReusedFiles", late)
    with pytest.raises(BadInput, match="was redacted"):
        repeat_prompt(old.pk, ann)
    assert Prompt.objects.count() == 1


def test_words_that_only_look_taken_out_are_asked_again(ann: User, client: Client) -> None:
    story = Story(ann, "[redacted]")
    old = story.ends("failed", "model_error")
    client.force_login(ann)
    assert f'action="/prompts/{old.pk}/again/"' in client.get(story.conversation.get_absolute_url()).text
    assert repeat_prompt(old.pk, ann).input == "[redacted]"
