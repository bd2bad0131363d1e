"""Four eyes: whoever asked for something cannot approve it, on any surface (C13)."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from agents.engine.execution.gates import ANOTHER
from agents.engine.schema import schema_digest
from agents.engine.tools.tool import Tool, ToolCall, tool
from agents.plugins.shell.tools import run
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.models import GateState, Output, State
from conversations.models import Step as Row
from conversations.notifications.mail import Notifier
from tests.api.client import error_of, with_key
from tests.conversations.recorded import ONE_GATE, Site, meddle, pending
from tests.conversations.support import asking, interrupted, person
from tests.engine.cast import Command
from tests.engine.support import digest_of

pytestmark = pytest.mark.django_db
ELSE = "Someone else must decide this"


@pytest.fixture
def four_eyes(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose command asks for another person than who asked for the turn."""

    @tool("shell.run", four_eyes=True, approval_hours=2)
    async def shell(call: ToolCall[Command]) -> str:
        """Run a command."""
        await site.world._do(call, call.input.command)
        return "done"

    def tools() -> list[Tool]:
        return [shell]

    monkeypatch.setattr(site.world, "tools", tools)
    return site


def chief(name: str = "chief") -> User:
    return person(name, first_name=name.title(), is_superuser=True, is_staff=True)


@pytest.mark.parametrize("superuser", [False, True])
def test_who_asked_does_not_approve_and_another_does(four_eyes: Site, kim: User, superuser: bool) -> None:
    """C13: superusers are not excepted; an edit is an approval like any other."""
    ann = person("ann", is_superuser=superuser)
    prompt = four_eyes.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    assert gate.who == ANOTHER
    for edited in (None, {"command": "b"}):
        with pytest.raises(DecisionRefused, match=ELSE) as caught:
            decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input=edited)
        assert caught.value.code == "four_eyes"
    assert pending(prompt) == [gate]
    decide(gate.pk, kim, "approve", digest=gate.digest, via="admin")
    four_eyes.works()
    prompt.refresh_from_db()
    assert (prompt.state, four_eyes.world.done) == (State.COMPLETED, [("shell.run", "a")])


def test_who_asked_may_say_no(four_eyes: Site, ann: User) -> None:
    """To reject is the safe choice, and lets the turn go on where a stop would end it."""
    prompt = four_eyes.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    assert decide(gate.pk, ann, "reject", digest=gate.digest, via="page").gate == GateState.REJECTED
    four_eyes.works()
    assert four_eyes.world.done == []


def test_who_asked_for_a_turn_in_anothers_conversation_is_kept_out_too(four_eyes: Site, ann: User, kim: User) -> None:
    prompt = four_eyes.runs(ann, *ONE_GATE)
    meddle("UPDATE conversations_prompt SET asked_by_id = %s", [kim.pk])
    (gate,) = pending(prompt)
    for by in (ann, kim):
        with pytest.raises(DecisionRefused, match=ELSE):
            decide(gate.pk, by, "approve", digest=gate.digest, via="api")
    assert decide(gate.pk, chief(), "approve", digest=gate.digest, via="api").gate == GateState.APPROVED


def test_to_run_again_what_was_interrupted_is_an_approval(ann: User, kim: User) -> None:
    _, card = interrupted(ann)
    Output.objects.filter(pk=card.pk).update(who=ANOTHER)
    with pytest.raises(DecisionRefused, match=ELSE):
        decide(card.pk, ann, "run_again", digest=card.digest, via="page")
    assert decide(card.pk, ann, "it_did_not", digest=card.digest, via="page").gate == GateState.ANSWERED


def test_the_card_says_who_may_and_has_no_button_to_approve(client: Client) -> None:
    """The requester is told on the page and in the admin; others decide as ever."""
    anna, kim = chief("anna"), chief("kim")
    payload = {"command": "make pay"}
    story, gate = asking(anna, "make pay", who=ANOTHER, digest=digest_of(run, payload), schema=schema_digest(run.input))
    admin = reverse("admin:conversations_approval_change", args=[gate.pk])
    together = f"{reverse('admin:conversations_approval_together')}?ids={gate.pk}"
    pages = (story.conversation.get_absolute_url(), admin, together, reverse("sheet", args=[story.conversation.pk]))
    client.force_login(anna)
    for page in pages:
        html = client.get(page).text
        assert ELSE in html, page
        assert "Kim can decide it under Approvals" in html, page
        assert 'value="approve"' not in html, page
    assert 'value="approve"' not in client.get(f"{admin}?as=edit").text
    assert "Waiting for someone else" in client.get(pages[0]).text
    for page in (reverse("decide", args=[gate.pk]), admin):
        answer = client.post(page, {"decision": "approve", "digest": gate.digest})
        assert answer.status_code in (400, 403)
        assert ELSE in answer.text
    client.force_login(kim)
    assert 'value="approve"' in client.get(admin).text
    assert client.post(admin, {"decision": "approve", "digest": gate.digest}).status_code == 302
    assert Output.objects.get(pk=gate.pk).decided_by == f"user:{kim.pk}"


def test_the_api_says_so_too(ann: User, kim: User) -> None:
    _, gate = asking(ann, who=ANOTHER)
    api, address = with_key(ann), f"/api/approvals/{gate.pk}/"
    assert api.get(address).json()["approval"]["who"] == ANOTHER
    error = error_of(api.post(f"{address}approve/", {"digest": gate.digest}), 403)
    assert error["code"] == "four_eyes"
    assert ELSE in error["message"]
    several = api.post("/api/approvals/decide/", [{"id": gate.pk, "digest": gate.digest, "decision": "approve"}])
    assert several.json()["results"][0]["error"]["code"] == "four_eyes"
    assert with_key(kim).post(f"{address}approve/", {"digest": gate.digest}).status_code == 200


def test_mails_tell_whoever_may_decide_and_the_requester_that_it_is_not_them(settings: object) -> None:
    settings.AGENTSITE_MAIL_AFTER_SECONDS = -60  # type: ignore[attr-defined]  # waits for long enough
    person("ann", email="ann@example.org")
    ann = User.objects.get(username="ann")
    person("kim", "decide_approval", email="kim@example.org", is_staff=True)
    asking(ann, who=ANOTHER)
    assert Notifier().send_due() == 2
    told = {letter.to[0]: letter for letter in mail.outbox}
    assert told["ann@example.org"].subject.startswith("Waiting for someone else: ")
    assert ELSE in told["ann@example.org"].body
    assert told["kim@example.org"].subject.startswith("Waiting for you: ")
    assert ELSE not in told["kim@example.org"].body


def test_how_long_a_tool_waits_stands_on_its_card(four_eyes: Site, client: Client) -> None:
    """Its own hours, not the site's; and that nobody answered is not that somebody said no."""
    anna = chief("anna")
    prompt = four_eyes.runs(anna, *ONE_GATE)
    (gate,) = pending(prompt)
    assert gate.expires_at
    assert gate.asked_at
    assert round((gate.expires_at - gate.asked_at).total_seconds() / 3600) == 2
    asked = json.loads(Row.objects.get(prompt=prompt, path="1/0/human", type="action_call").payload)
    assert asked["payload"]["who"] == ANOTHER
    client.force_login(anna)
    admin = reverse("admin:conversations_approval_change", args=[gate.pk])
    for page in (prompt.conversation.get_absolute_url(), admin):
        html = client.get(page).text
        assert "Expires " in html
        assert "counts as no" not in html
