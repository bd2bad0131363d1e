"""Turns that the system starts because staff asked for them, in anybody's conversation (S4)."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as settings_of_site
from django.contrib.auth.models import User

from agents.engine.decisions import Ask
from conversations.api.prompts import Prompts
from conversations.models import Conversation, ConversationKind, Output, Prompt, State, Step
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.prompts.start import cancel_prompt, continue_prompt, start_conversation, start_prompt
from conversations.usage.quotas import UNATTENDED_MOST
from conversations.usage.totals import DAY, of_person
from conversations.verification.stored import verify
from tests.api.client import Api, error_of, said, with_key
from tests.conversations.recorded import Site
from tests.engine.support import call, says
from tests.ledgers.turns import DONE, lost_after

pytestmark = pytest.mark.django_db


@pytest.fixture
def stan() -> User:
    """Staff without any permission."""
    return User.objects.create_user("stan", is_staff=True)


@pytest.fixture
def staff(stan: User) -> Api:
    return with_key(stan)


@pytest.fixture
def talk(ann: User) -> Conversation:
    return start_conversation(ann, "Ann's")


def prompts_of(conversation: Conversation) -> str:
    return f"/api/conversations/{conversation.pk}/prompts/"


def started(staff: Api, talk: Conversation, body: Any = None) -> Prompt:
    response = staff.post(prompts_of(talk), body)
    assert response.status_code == 201, response.content
    return Prompt.objects.get(pk=response.json()["id"])


def test_staff_start_one_in_anybodys_conversation(staff: Api, stan: User, talk: Conversation, api: Api) -> None:
    """They are told its id, conversation and state; a request sent again starts nothing; its owner reads it."""
    response = staff.post(prompts_of(talk), {"visible": False, "model": "high"}, Idempotency_Key="k")
    prompt = Prompt.objects.get()
    assert response.status_code == 201
    assert response.json() == {"id": prompt.pk, "conversation": talk.pk, "state": "queued"}
    assert "Location" not in response
    assert staff.post(prompts_of(talk), {"visible": False, "model": "high"}, Idempotency_Key="k").json() == (
        response.json()
    )
    told = api.get(f"/api/prompts/{prompt.pk}/").json()
    assert (told["input"], told["visible"], told["model"], told["origin"]) == (None, False, "high", "api")
    assert (prompt.asked_by, prompt.attended) == (stan, False)
    assert Step.objects.get().actor == "system"
    assert verify(talk.pk).problems == []


def test_reading_stays_its_owners(staff: Api, talk: Conversation) -> None:
    prompt = started(staff, talk)
    place = f"/api/prompts/{prompt.pk}/"
    for response in (
        *(staff.get(f"{place}{what}") for what in ("", "steps/", "outputs/")),
        *(staff.post(f"{place}{what}/") for what in ("cancel", "continue", "again")),
        staff.get(prompts_of(talk)),
        staff.get(f"/api/conversations/{talk.pk}/"),
    ):
        assert said(response, 404) == "not_found"


def test_nobody_speaks_for_somebody_else(staff: Api, talk: Conversation, ann: User) -> None:
    """A message or a policy in another's conversation is refused, also of staff, and all of it of anybody else."""
    for sent in ({"input": "Hi."}, {"policy": "agent.x", "payload": {}}):
        assert said(staff.post(prompts_of(talk), sent), 404) == "not_found"
    stranger = with_key(User.objects.create_user("sam"))
    bodies: list[dict[str, Any]] = [{}, {"visible": False}, {"input": "Hi."}]
    for body in bodies:
        assert said(stranger.post(prompts_of(talk), body), 404) == "not_found"
    behind = start_conversation(ann, kind=ConversationKind.HIDDEN)
    assert said(staff.post(prompts_of(behind)), 404) == "not_found"
    assert said(with_key(User.objects.get(username="stan"), "read").post(prompts_of(talk)), 403) == "forbidden"
    assert not Prompt.objects.exists()


def test_its_owner_is_charged(staff: Api, stan: User, talk: Conversation, ann: User, site: Site) -> None:
    started(staff, talk)
    site.speaks(says("Good morning."))
    site.works()
    assert Prompt.objects.get().state == State.COMPLETED
    assert of_person(ann.pk, DAY).spent.answers == 1
    assert of_person(stan.pk, DAY).spent.answers == 0


def test_they_do_not_keep_their_owner_from_sending(
    staff: Api, talk: Conversation, ann: User, api: Api, settings: Any
) -> None:
    """Hidden turns, which the owner could not stop, in one conversation and in others."""
    settings.AGENTSITE_PROMPTS_AT_ONCE = 2
    talks = [talk, start_conversation(ann), start_conversation(ann)]
    for each in talks:
        started(staff, each, {"visible": False})
    assert api.get("/api/usage/").json()["running_prompts"] == 0
    assert api.post(prompts_of(talks[1]), {"input": "Hi."}).status_code == 201
    assert api.get("/api/usage/").json()["running_prompts"] == 1


def test_few_are_queued_in_one_conversation(staff: Api, talk: Conversation, ann: User, api: Api) -> None:
    """One more is refused until one of them has begun; it is told how many, and loses nothing."""
    assert api.post(prompts_of(talk), {"input": "I am first."}).status_code == 201
    queued = [started(staff, talk) for _ in range(UNATTENDED_MOST)]
    for _ in range(2):
        error = error_of(staff.post(prompts_of(talk), Idempotency_Key="k"), 429)
        assert error["code"] == "over_quota"
        assert f"{UNATTENDED_MOST} turns without a message are already queued" in error["message"]
    assert Prompt.objects.count() == UNATTENDED_MOST + 1
    assert started(staff, start_conversation(ann)).state == State.QUEUED
    cancel_prompt(queued[0].pk, ann)
    assert staff.post(prompts_of(talk), Idempotency_Key="k").status_code == 201


def test_the_documented_limit_is_the_real_one() -> None:
    documented = (settings_of_site.BASE_DIR / "docs/api.md").read_text()
    assert f"At most {UNATTENDED_MOST} of them can be queued" in documented
    assert f"but {UNATTENDED_MOST} of a conversation can be queued" in (Prompts.post.__doc__ or "")


@pytest.mark.parametrize("body", [{}, {"visible": False}])
def test_staff_start_none_that_a_message_could_not(
    staff: Api, talk: Conversation, ann: User, body: dict[str, Any]
) -> None:
    """While all work is stopped, and for an owner who was deactivated."""
    turn_on(User.objects.create_user("chief", is_superuser=True), "A leak.")
    assert said(staff.post(prompts_of(talk), body), 503) == "stopped"
    turn_off(None)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    error = error_of(staff.post(prompts_of(talk), body), 403)
    assert (error["code"], "The account was deactivated" in error["message"]) == ("forbidden", True)
    assert not Prompt.objects.exists()


def go_on(talk: Conversation, owner: User) -> Prompt:
    """A turn by which a person continues one that the system had started."""
    stopped = start_prompt(talk, None)
    Prompt.objects.filter(pk=stopped.pk).update(fence=1)  # as if a worker had begun it
    cancel_prompt(stopped.pk, owner)
    return continue_prompt(stopped.pk, owner)


@pytest.mark.parametrize("by", ["a person", "a person who goes on", "staff", "the system"])
def test_nobody_is_there_to_say_what_became_of_a_call(
    by: str, staff: Api, talk: Conversation, ann: User, site: Site
) -> None:
    """The model is told that nobody knows; a person who asked is shown a card."""
    prompt = {
        "a person": lambda: start_prompt(talk, ann, "Pay."),
        "a person who goes on": lambda: go_on(talk, ann),
        "staff": lambda: started(staff, talk),
        "the system": lambda: start_prompt(talk, None, "Pay."),
    }[by]()
    site.speaks(says("x", call("pay", amount=1)), *DONE)
    lost_after(site, "action_start", "1/0")
    site.works()
    prompt.refresh_from_db()
    (pay,) = Output.objects.filter(prompt=prompt, type="tool")
    if by in ("a person", "a person who goes on"):
        assert (prompt.attended, pay.ask, prompt.state) == (True, Ask.INTERRUPTED, State.WAITING)
    else:
        assert (prompt.attended, pay.ask, prompt.state) == (False, "", State.COMPLETED)
        assert pay.content["result"]["error"]["code"] == "interrupted"
    assert verify(talk.pk).problems == []
