"""Memory and workflows: what a run was given in secret is not kept, and an agent within a run is told nothing."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents import discovery
from agents.engine.interfaces.services import PlainServices
from agents.engine.ledger import JSON
from agents.engine.tools.plugin import Round
from agents.engine.view import View
from agents.models import Memory
from agents.plugins.memory import keeping
from agents.plugins.memory.plugin import OWN_TOOLS, MemoryPlugin
from tests.conversations.recorded import Site, in_this_thread
from tests.conversations.support import person
from tests.workflows import vault
from tests.workflows.shop import installed
from tests.workflows.test_secrets import started, to_the_end
from workflows import Flow, workflow

pytestmark = pytest.mark.django_db

TOOLS = [tool for tool in discovery.installed().tools if tool.name in OWN_TOOLS]


@workflow("vault.noted", title="Visit and remember")
async def noted(flow: Flow[vault.Visit]) -> JSON:
    """Logs in, and has what the host said remembered."""
    said: Any = await flow.tool("vault.login", host=flow.input.host, password=flow.input.password)
    return await flow.tool("memory.save", text=f"It says: {said['said']}", pinned=True)


def test_a_secret_of_a_run_is_not_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = person("ann")
    monkeypatch.setattr(site.world, "tools", lambda: [*vault.TOOLS, *TOOLS])
    with installed(site, monkeypatch, workflows=(noted,)):
        prompt = to_the_end(site, started(ann, noted), ann)
    assert prompt.state == "completed"
    assert [each.text for each in Memory.objects.all()] == ["It says: Welcome, [secret]!"]


class Services(PlainServices):
    async def look_up(self, function: Any, *args: Any) -> Any:
        return await in_this_thread(function, *args)


def prepared(user: User, path: str) -> Round:
    """The first round of an agent whose call stands there."""
    services = Services(user.pk)
    round = Round(1, path, input="Tea?", base="Be kind.", tools=TOOLS, view=View(), services=services)
    async_to_sync(round.prepare)([MemoryPlugin()])
    return round


def test_an_agent_that_another_policy_calls_is_told_nothing_and_has_no_tools_for_it() -> None:
    ann = person("ann")
    keeping.save(ann.pk, "I prefer tea.", pinned=True)
    within, own = prepared(ann, "1/1"), prepared(ann, "1")
    assert (within.system, within.tools) == ("Be kind.", [])
    assert "I prefer tea." in own.system
    assert own.tools == TOOLS
