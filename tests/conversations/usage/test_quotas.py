"""Quotas are checked whenever a turn starts (C19)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.models import Conversation, Origin, Prompt, Quota, State, Usage
from conversations.prompts.start import (
    cancel_prompt,
    continue_prompt,
    start_conversation,
    start_prompt,
)
from conversations.usage.quotas import OverQuota
from tests.api.client import error_of, with_key
from tests.conversations.recorded import at_once
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db


def limited(owner: User, **most: int) -> None:
    Quota.objects.create(user=owner, **most)


def spend(owner: User, tokens: int) -> None:
    Usage.objects.create(
        conversation_id=1, prompt_id=1, path="1", user=owner, time=timezone.now(), input_tokens=tokens, output_tokens=1
    )


def stopped(owner: User) -> Prompt:
    """A turn that a worker began and a person stopped."""
    story = Story(owner)
    cancel_prompt(story.prompt.pk, owner)
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    return story.prompt


def test_turns_at_a_time_are_limited_however_one_starts_them(ann: User) -> None:
    """Messages, and going on. What waits for a person costs nothing, and what the system starts queues."""
    old = stopped(ann)
    asking(ann)
    limited(ann, running_prompts=1)
    first = start_prompt(start_conversation(ann), ann, "One.")
    with pytest.raises(OverQuota, match="which is the limit"):
        start_prompt(start_conversation(ann), ann, "Two.")
    with pytest.raises(OverQuota, match="which is the limit"):
        continue_prompt(old.pk, ann)
    assert start_prompt(start_conversation(ann), ann, None, origin=Origin.API).state == State.QUEUED
    cancel_prompt(first.pk, ann)
    assert start_prompt(start_conversation(ann), ann, "Two.").state == State.QUEUED


def test_the_owner_of_the_conversation_pays(ann: User, kim: User) -> None:
    limited(ann, tokens_a_day=100)
    spend(ann, 100)
    with pytest.raises(OverQuota, match="101 tokens were used"):
        start_prompt(start_conversation(ann), kim, "On Ann's account.")
    assert start_prompt(start_conversation(kim), ann, "On Kim's.").pk


def test_a_turn_in_progress_is_said_before_a_quota(ann: User) -> None:
    """What to do about it is to wait, not to ask for more."""
    conversation = start_conversation(ann)
    start_prompt(conversation, ann, "One.")
    limited(ann, running_prompts=1)
    error = error_of(with_key(ann).post(f"/api/conversations/{conversation.pk}/prompts/", {"input": "Two."}), 409)
    assert error["code"] == "turn_in_progress"


def test_programs_are_told_and_nothing_is_taken(ann: User) -> None:
    limited(ann, tokens_a_day=1)
    spend(ann, 5)
    talk, api = start_conversation(ann), with_key(ann)
    error = error_of(api.post(f"/api/conversations/{talk.pk}/prompts/", {"input": "Hi."}, Idempotency_Key="k"), 429)
    assert error["code"] == "over_quota"
    assert "Try again later" in error["message"]
    assert not Prompt.objects.exists()
    Quota.objects.update(tokens_a_day=0)
    assert api.post(f"/api/conversations/{talk.pk}/prompts/", {"input": "Hi."}, Idempotency_Key="k").status_code == 201


@pytest.mark.parametrize("place", ["start", "say"])
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_page_keeps_the_text(client: Client, ann: User, place: str, headers: dict[str, str]) -> None:
    limited(ann, tokens_a_day=1)
    spend(ann, 5)
    client.force_login(ann)
    talk = start_conversation(ann, "Quiet")
    address = reverse("say", args=[talk.pk]) if place == "say" else reverse("start")
    answer = client.post(address, {"input": "A long thought."}, headers=headers)
    assert answer.status_code == 429
    assert "tokens were used in the last 24 hours" in answer.text
    assert ("Your text is still here." if headers else "A long thought.") in answer.text
    assert Conversation.objects.count() == 1
    assert not Prompt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_ten_starts_at_once_as_many_begin_as_may(ann: User) -> None:
    """Each counts those before it, in ten conversations that share no lock but their owner's."""
    limited(ann, running_prompts=3)
    talks = [start_conversation(ann) for _ in range(10)]
    came_to = at_once(*[lambda talk=talk: start_prompt(talk, ann, "Now.") for talk in talks])
    assert sum(isinstance(one, Prompt) for one in came_to) == 3
    assert sum(isinstance(one, OverQuota) for one in came_to) == 7, came_to


def test_an_administrator_sets_it_at_the_person(client: Client, ann: User) -> None:
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    address = reverse("admin:auth_user_change", args=[ann.pk])
    page = client.get(address)
    assert 'name="quota-0-running_prompts"' in page.text
    form = page.context["adminform"].form
    sent = {name: form.initial.get(name) or "" for name in form.fields if name not in ("groups", "user_permissions")}
    joined = ann.date_joined
    sent |= {"date_joined_0": joined.date().isoformat(), "date_joined_1": joined.strftime("%H:%M:%S")}
    sent |= {"quota-TOTAL_FORMS": "1", "quota-INITIAL_FORMS": "0", "quota-0-running_prompts": "2"}
    sent |= {"quota-0-user": str(ann.pk), "quota-0-tokens_a_day": "5000"}
    sent = {name: value for name, value in sent.items() if value != ""}
    answer = client.post(address, sent)
    assert answer.status_code == 302, answer.context["errors"]
    found = Quota.objects.get(user=ann)
    assert (found.running_prompts, found.tokens_a_day) == (2, 5000)
