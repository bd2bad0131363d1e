"""The gatekeeper: an approved call may start only while its approver and owner still have their rights."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.engine.tools.tool import Tool
from conversations.approvals.gatekeeper import (
    APPROVER_GONE,
    APPROVER_NOT_ALLOWED,
    FOUR_EYES,
    OWNER_GONE,
    SiteGatekeeper,
)
from conversations.erasure.conversations import erase
from conversations.models import Prompt, State, Step
from conversations.verification.stored import verify
from tests.conversations.recorded import ONE_GATE, Site, in_this_thread
from tests.conversations.support import asking
from tests.engine.cast import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return asking(ann)[0].prompt


def tool_of(*, four_eyes: bool = False) -> Tool:
    return replace(next(tool for tool in World().tools() if tool.name == "shell.run"), four_eyes=four_eyes)


def why(prompt: Prompt, by: str, *, four_eyes: bool = False) -> str | None:
    keeper = SiteGatekeeper(in_this_thread, prompt.pk, prompt.conversation.owner_id)
    return async_to_sync(keeper.holds)(tool_of(four_eyes=four_eyes), by, None)


def test_what_people_approved_may_start(prompt: Prompt, ann: User, kim: User) -> None:
    for by in ("", f"user:{ann.pk}", f"user:{kim.pk}"):
        assert why(prompt, by) is None
    assert why(prompt, f"user:{kim.pk}", four_eyes=True) is None


def test_nothing_is_done_for_somebody_who_left(prompt: Prompt, ann: User, kim: User) -> None:
    """C11: an agent acts with its owner's rights, and they have none any more."""
    User.objects.filter(pk=ann.pk).update(is_active=False)
    for by in ("", f"user:{kim.pk}"):
        assert why(prompt, by) == OWNER_GONE


def test_an_approval_does_not_outlive_the_right_to_give_it(prompt: Prompt, ann: User, kim: User) -> None:
    """C13: read anew, so that what a session or a worker once knew does not count."""
    assert why(prompt, f"user:{kim.pk}") is None
    kim.user_permissions.clear()
    assert why(prompt, f"user:{kim.pk}") == APPROVER_NOT_ALLOWED
    ann.groups.clear()
    assert why(prompt, f"user:{ann.pk}") == APPROVER_NOT_ALLOWED
    User.objects.filter(pk=kim.pk).update(is_active=False)
    for gone in (f"user:{kim.pk}", "user:99999", "user:x"):
        assert why(prompt, gone) == APPROVER_GONE


def test_a_tool_that_wants_four_eyes_by_now_gets_them(prompt: Prompt, ann: User) -> None:
    """Also where an earlier version of it was content with two."""
    User.objects.filter(pk=ann.pk).update(is_superuser=True)
    assert why(prompt, f"user:{ann.pk}") is None
    assert why(prompt, f"user:{ann.pk}", four_eyes=True) == FOUR_EYES


def test_nothing_starts_in_a_conversation_that_was_erased(prompt: Prompt, ann: User) -> None:
    erase(prompt.conversation, ann)
    assert why(prompt, f"user:{ann.pk}") == OWNER_GONE


def test_a_worker_asks_before_it_starts_what_was_approved(site: Site, ann: User, kim: User) -> None:
    """C13: between the approval and the start the right was taken away; nothing runs, and the model is told."""
    prompt = site.runs(ann, *ONE_GATE)
    site.approves(prompt, kim)
    kim.user_permissions.clear()
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, site.world.done) == (State.COMPLETED, [])
    result = Step.objects.get(prompt=prompt, path="1/0", type="action_result").content
    assert (result["error"], APPROVER_NOT_ALLOWED in result["message"]) == (True, True)
    assert verify(prompt.conversation_id).problems == []
