"""Four eyes: an approver who rewrites a call, which would then run on their word alone, through every door."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.engine import Ledger, approve
from agents.engine.tools.tool import Tool, ToolCall, tool
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.approvals.edits import AS_ASKED
from conversations.ledger.locked import locked_turn
from conversations.models import GateState, Output, Prompt
from tests.api.client import error_of, with_key
from tests.conversations.recorded import ONE_GATE, Site, pending
from tests.conversations.support import person
from tests.engine.cast import Command

pytestmark = pytest.mark.django_db
EDITED = {"command": "rm -rf /"}


@pytest.fixture
def chief() -> User:
    return person("chief", first_name="Chief", is_superuser=True, is_staff=True)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)


@pytest.fixture
def asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """A turn that waits for four eyes."""

    @tool("shell.run", four_eyes=True)
    async def shell(call: ToolCall[Command]) -> str:
        """Run a command."""
        await site.world._do(call, call.input.command)
        return "done"

    def tools() -> list[Tool]:
        return [shell]

    monkeypatch.setattr(site.world, "tools", tools)
    return site.runs(person("ann"), *ONE_GATE)


def runs_as_asked(site: Site, gate: Output, by: User) -> None:
    """It still waits; approved as it was asked for, it runs as it was."""
    gate.refresh_from_db()
    assert gate.gate == GateState.PENDING
    decide(gate.pk, by, "approve", digest=gate.digest, via="admin")
    site.works()
    assert site.world.done == [("shell.run", "a")]


@pytest.mark.parametrize("via", ["page", "admin", "api"])
def test_no_door_takes_an_edit(site: Site, asked: Prompt, chief: User, via: str) -> None:
    (gate,) = pending(asked)
    with pytest.raises(DecisionRefused, match="as it was asked for") as caught:
        decide(gate.pk, chief, "approve", digest=gate.digest, via=via, input=EDITED)
    assert caught.value.code == "not_editable"
    runs_as_asked(site, gate, chief)


def test_the_api_says_what_to_do(site: Site, asked: Prompt, chief: User) -> None:
    (gate,) = pending(asked)
    body = {"digest": gate.digest, "input": EDITED}
    error = error_of(with_key(chief).post(f"/api/approvals/{gate.pk}/approve/", body), 400)
    assert error["code"] == "not_editable"
    assert AS_ASKED in error["message"]
    runs_as_asked(site, gate, chief)


def test_the_card_offers_no_edit_and_refuses_one(site: Site, asked: Prompt, chief: User, client: Client) -> None:
    """Also for an address or a form that is made by hand."""
    (gate,) = pending(asked)
    client.force_login(chief)
    address = f"/admin/conversations/approval/{gate.pk}/change/"
    page = client.get(address).text
    assert 'value="approve"' in page
    assert ">Edit<" not in page
    assert 'name="edited"' not in client.get(f"{address}?as=edit").text
    posted = {"decision": "approve", "digest": gate.digest, "edited": "1", "command": EDITED["command"]}
    assert "as it was asked for" in client.post(address, posted).text
    runs_as_asked(site, gate, chief)


def test_a_program_cannot_either(asked: Prompt) -> None:
    (gate,) = pending(asked)
    with locked_turn(asked.pk) as turn, pytest.raises(ValueError, match="needs four eyes"):
        approve(Ledger(tuple(turn.view.steps)), gate.gate_path, by="user:9", input=EDITED)
