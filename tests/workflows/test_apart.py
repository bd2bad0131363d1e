"""Tools are for models and workflows for people: neither is ever taken for the other."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents import discovery as of_agents
from agents.engine.interfaces.provider import ToolRequest
from agents.engine.outputs.kinds import Failure, ToolOutput
from conversations.models import Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from conversations.prompts.startable import NotAllowed, UnknownPolicy, find, find_for
from conversations.verification.stored import verify
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import says
from tests.workflows import shop
from workflows import discovery

pytestmark = pytest.mark.django_db
NAMES = ("workflow:shop.order", "workflow_shop_order", "shop.order", "shop_order")
"""How a model might name a workflow."""


@pytest.fixture
def ann(db: None) -> User:
    return person("ann")


def test_no_tool_is_started_by_a_person(ann: User) -> None:
    """Not even one that only workflows call, and not over any address that starts something (S58)."""
    client = Client()
    client.force_login(ann)
    listed = client.get("/workflows/").text
    for tool in of_agents.installed().tools:
        with pytest.raises(UnknownPolicy):
            find(tool.name)
        with pytest.raises(NotAllowed):
            find_for(ann, tool.name)
        assert tool.name not in discovery.installed()
        assert client.get(f"/workflows/{tool.name}/").status_code == 404
        assert f"/workflows/{tool.name}/" not in listed
    assert not Prompt.objects.exists()


def test_no_model_is_offered_a_workflow() -> None:
    """Neither as a tool nor as a policy that models may call (S73)."""
    assert not any(policy.offered for policy in of_agents.added())
    offered = {tool.name for tool in of_agents.installed().offered}
    assert not {name for each in discovery.installed().values() for name in (each.name, each.policy_name)} & offered


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_calls_one_is_told_that_there_is_no_such_tool(
    name: str, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Any = ToolRequest(name, {"input": {"item": "paper"}, "item": "paper"})
    with shop.installed(site, monkeypatch, says("I order.", asked), says("Oh.")):
        prompt = start_prompt(start_conversation(ann), ann, "Order paper.")
        site.works()
    prompt.refresh_from_db()
    (entry,) = (row.entry() for row in Output.objects.filter(prompt=prompt, type="tool"))
    assert isinstance(entry, ToolOutput)
    assert isinstance(entry.result, Failure)
    assert (entry.result.error["code"], prompt.state, site.world.done) == ("unknown_tool", "completed", [])
    assert verify(prompt.conversation_id).problems == []
