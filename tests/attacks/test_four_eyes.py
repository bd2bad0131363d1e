"""Four eyes: an approver who rewrites a call, which would then run on their word alone, through every door."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.engine import Ledger, approve
from agents.engine.tools.tool import Tool, ToolCall, tool
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.ledger.locked import locked_turn
from conversations.models import GateState, Output, Prompt, State
from conversations.notifications.mail import Notifier
from conversations.verification.stored import verify
from tests.api.client import error_of, with_key
from tests.conversations.recorded import ONE_GATE, Site, pending
from tests.conversations.support import person
from tests.engine.cast import Command

pytestmark = pytest.mark.django_db
EDITED = {"command": "rm -rf /"}


def chief(name: str) -> User:
    return person(name, first_name=name.title(), is_superuser=True, is_staff=True)


@pytest.fixture
def bea() -> User:
    return chief("bea")


@pytest.fixture
def cem() -> User:
    return chief("cem")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose command asks for another person than who asked for the turn."""
    site = Site(monkeypatch)

    @tool("shell.run", four_eyes=True, approval_hours=2)
    async def shell(call: ToolCall[Command]) -> str:
        """Run a command."""
        await site.world._do(call, call.input.command)
        return "done"

    def tools() -> list[Tool]:
        return [shell]

    monkeypatch.setattr(site.world, "tools", tools)
    return site


@pytest.fixture
def asked(site: Site) -> Prompt:
    """A turn of Ann's that waits for four eyes."""
    return site.runs(person("ann", is_superuser=True, is_staff=True), *ONE_GATE)


def edited(prompt: Prompt, by: User, command: str = EDITED["command"]) -> Output:
    """The approval of the turn's gate with another command, as the gate is then."""
    (gate,) = pending(prompt)
    return decide(gate.pk, by, "approve", digest=gate.digest, via="admin", input={"command": command})


def still_waits(site: Site, prompt: Prompt) -> Output:
    """Nothing ran, whatever the workers do, and the gate is open."""
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, site.world.done) == (State.WAITING, [])
    (gate,) = pending(prompt)
    return gate


def test_an_edit_asks_somebody_else_and_runs_on_their_word(site: Site, asked: Prompt, bea: User, cem: User) -> None:
    (first,) = pending(asked)
    after = edited(asked, bea)
    assert (after.pk, after.gate, after.edited_by) == (first.pk, GateState.PENDING, f"user:{bea.pk}")
    assert (after.gate_path, after.digest == first.digest) == ("1/0/card1", False)
    assert after.expires_at
    assert after.expires_at - timezone.now() > timedelta(hours=1, minutes=59)
    gate = still_waits(site, asked)
    decide(gate.pk, cem, "approve", digest=gate.digest, via="admin")
    site.works()
    asked.refresh_from_db()
    assert (asked.state, site.world.done) == (State.COMPLETED, [("shell.run", EDITED["command"])])
    assert verify(asked.conversation_id).problems == []


@pytest.mark.parametrize("via", ["page", "admin", "api"])
def test_neither_the_editor_nor_who_asked_approves_the_edit(site: Site, asked: Prompt, bea: User, via: str) -> None:
    ann = User.objects.get(username="ann")
    chief("cem")
    edited(asked, bea)
    gate = still_waits(site, asked)
    for by, why in ((bea, "because you edited it"), (ann, "because you asked for it")):
        for changed in (None, {"command": "ls"}):
            with pytest.raises(DecisionRefused, match=why) as caught:
                decide(gate.pk, by, "approve", digest=gate.digest, via=via, input=changed)
            assert caught.value.code == "four_eyes"
    still_waits(site, asked)


def test_the_editor_may_still_say_no(site: Site, asked: Prompt, bea: User, cem: User) -> None:
    gate = edited(asked, bea)
    assert decide(gate.pk, bea, "reject", digest=gate.digest, via="admin").gate == GateState.REJECTED
    site.works()
    assert site.world.done == []
    assert verify(asked.conversation_id).problems == []


def test_an_edit_of_the_edit_asks_again(site: Site, asked: Prompt, bea: User, cem: User) -> None:
    """Two editors, each approving what the other wrote last: each call that runs was written and approved by two."""
    edited(asked, bea)
    gate = edited(asked, cem, "ls")
    assert gate.gate_path == "1/0/card2"
    with pytest.raises(DecisionRefused, match="you edited it"):
        decide(gate.pk, cem, "approve", digest=gate.digest, via="admin")
    decide(gate.pk, bea, "approve", digest=gate.digest, via="admin")
    site.works()
    assert site.world.done == [("shell.run", "ls")]
    assert verify(asked.conversation_id).problems == []


def test_an_approval_of_the_first_call_does_not_apply_to_the_edit(
    site: Site, asked: Prompt, bea: User, cem: User
) -> None:
    """An open page still shows the call as it was asked for."""
    (before,) = pending(asked)
    edited(asked, bea)
    with pytest.raises(Conflict, match="not what you were shown"):
        decide(before.pk, cem, "approve", digest=before.digest, via="admin")
    still_waits(site, asked)


def test_an_edit_that_is_sent_twice_asks_once(site: Site, asked: Prompt, bea: User, cem: User) -> None:
    """After a lost answer the client sends the same again, with the digest that it knows."""
    (before,) = pending(asked)
    gates = [
        decide(before.pk, bea, "approve", digest=before.digest, via="api", input=EDITED).gate_path for _ in range(2)
    ]
    assert gates == ["1/0/card1", "1/0/card1"]
    still_waits(site, asked)


def test_an_edit_that_nobody_could_approve_is_refused(site: Site, asked: Prompt, bea: User) -> None:
    with pytest.raises(DecisionRefused, match="nobody else could approve") as caught:
        edited(asked, bea)
    assert caught.value.code == "not_editable"
    gate = still_waits(site, asked)
    decide(gate.pk, bea, "approve", digest=gate.digest, via="admin")
    site.works()
    assert site.world.done == [("shell.run", "a")]


def test_a_tool_that_needs_four_eyes_by_now_does_not_run_an_edit_on_one_word(
    site: Site, monkeypatch: pytest.MonkeyPatch, bea: User, cem: User
) -> None:
    (strict,) = site.world.tools()
    monkeypatch.setattr(site.world, "tools", lambda: [replace(strict, four_eyes=False)])
    prompt = site.runs(person("ann"), *ONE_GATE)
    assert edited(prompt, bea).gate == GateState.APPROVED
    monkeypatch.setattr(site.world, "tools", lambda: [strict])
    site.starts(person("kim"), *ONE_GATE)  # deploys the site with this tool
    site.works()
    (row,) = Output.objects.gates().filter(prompt=prompt)
    assert site.world.done == []
    assert row.content["result"]["error"]["code"] == "not_permitted"


def test_over_the_api(site: Site, asked: Prompt, bea: User, cem: User) -> None:
    (gate,) = pending(asked)
    address = f"/api/approvals/{gate.pk}/approve/"
    answer = with_key(bea).post(address, {"digest": gate.digest, "input": EDITED}).json()
    approval = answer["approval"]
    assert (approval["state"], approval["edited_by"], answer["input"]) == ("pending", f"user:{bea.pk}", EDITED)
    error = error_of(with_key(bea).post(address, {"digest": approval["digest"]}), 403)
    assert error["code"] == "four_eyes"
    assert "you edited it" in error["message"]
    still_waits(site, asked)
    assert with_key(cem).post(address, {"digest": approval["digest"]}).json()["approval"]["state"] == "approved"
    site.works()
    assert site.world.done == [("shell.run", EDITED["command"])]


def test_in_the_admin(site: Site, asked: Prompt, bea: User, cem: User, client: Client) -> None:
    (gate,) = pending(asked)
    address = f"/admin/conversations/approval/{gate.pk}/change/"
    client.force_login(bea)
    form = client.get(f"{address}?as=edit").text
    assert "Save and ask someone else" in form
    assert "someone else has to approve the call as you edited it" in form
    (field,) = re.findall(r'<textarea[^>]* name="([^"]+)"', form)
    posted = {"decision": "approve", "digest": gate.digest, "edited": "1", field: EDITED["command"]}
    assert "Somebody else has to approve it now." in client.post(address, posted, follow=True).text
    mine = client.get(address).text
    assert "because you edited it" in mine
    assert "Cem can decide it" in " ".join(mine.split())
    assert 'value="approve"' not in mine
    now = still_waits(site, asked)
    assert client.post(address, {"decision": "approve", "digest": now.digest}).status_code == 400
    still_waits(site, asked)
    client.force_login(cem)
    theirs = client.get(address).text
    assert "Edited by Bea. View the original input" in theirs
    client.post(address, {"decision": "approve", "digest": now.digest})
    site.works()
    assert site.world.done == [("shell.run", EDITED["command"])]
    assert "Approved by you, as edited by Bea" in client.get(address).text


def test_in_a_program(asked: Prompt) -> None:
    """Without a site, the ledger itself says who may."""
    (gate,) = pending(asked)
    with locked_turn(asked.pk) as turn:
        ledger = Ledger(tuple(turn.view.steps))
    ann = ledger[0].actor
    with pytest.raises(ValueError, match="somebody other than"):
        approve(ledger, "1/0", by=ann)
    after = approve(ledger, gate.gate_path, by="user:901", input=EDITED)
    assert [step.type for step in after][-2:] == ["action_result", "action_call"]
    for by in (ann, "user:901"):
        with pytest.raises(ValueError, match="somebody other than"):
            approve(after, "1/0", by=by)
    done = approve(after, "1/0", by="user:902")
    assert [(step.type, step.payload.get("decision")) for step in done][-2:] == [
        ("action_result", "approve"),
        ("resume", None),
    ]


@pytest.mark.usefixtures("cem")
def test_the_mail_to_the_editor_says_why_somebody_else_decides(
    site: Site, asked: Prompt, bea: User, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.AGENTSITE_URL, settings.AGENTSITE_MAIL_AFTER_SECONDS = "https://agents.example", -60
    User.objects.filter(pk=bea.pk).update(email="bea@example.org")
    edited(asked, bea)
    Notifier().send_due()
    (letter,) = mailoutbox
    assert letter.to == ["bea@example.org"]
    assert "because you edited it" in letter.body
    assert "what you asked for or edited is waiting for someone else" in letter.body
