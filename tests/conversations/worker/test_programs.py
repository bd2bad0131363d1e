"""Turns whose root is a program and no agent: they end as any other, for people, clients and the check."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from agents.engine import Action, Context, PolicyRegistry, Step, ToolError, error
from agents.engine.runtime.policy import Policy
from conversations.models import Prompt
from conversations.push.event_reader import EventReader
from conversations.verification.stored import verify
from tests.api.client import with_key
from tests.conversations.recorded import Site
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


def returning(*steps: Step) -> Policy:
    async def program(action: Action, ctx: Context) -> list[Step]:
        return list(steps)

    return program


def raising(error: Exception) -> Policy:
    async def program(action: Action, ctx: Context) -> list[Step]:
        raise error

    return program


def ran(site: Site, owner: User, program: Policy | None) -> Prompt:
    """A turn of this program, instead of the agent's."""
    prompt = site.starts(owner)
    registry = PolicyRegistry({"agent": program} if program else {})
    site.monkeypatch.setattr("agents.registry.policies", lambda: registry)
    site.works()
    prompt.refresh_from_db()
    return prompt


def result(**payload: Any) -> Step:
    return Step("weather", "action_result", payload)


BROKEN = "The site itself failed. The details are in its log."


@pytest.mark.parametrize(
    ("program", "ended", "told"),
    [
        (returning(), ("completed", "done"), ""),
        (returning(result(city="Olympia", state="Washington")), ("completed", "done"), ""),
        (returning(result(state="failed", stop_reason=3, usage="a lot")), ("completed", "done"), ""),
        (returning(result(usage={"input_tokens": 7}, model="m")), ("completed", "done"), ""),
        (returning(result(error=True)), ("completed", "done"), ""),  # without code and message it is a value
        (returning(error("weather", "not_found", "No such city.")), ("failed", "error"), "No such city."),
        (raising(ToolError("Closed today.", code="closed")), ("failed", "error"), "Closed today."),
        (raising(ZeroDivisionError("a secret")), ("failed", "internal_error"), BROKEN),
        (returning(result(a=1), result(a=2)), ("failed", "internal_error"), BROKEN),
        (None, ("failed", "error"), "No policy 'agent'."),
    ],
)
def test_a_program_ends_its_turn(
    ann: User, site: Site, program: Policy | None, ended: tuple[str, str], told: str
) -> None:
    """Whatever its result holds: in its row, its stream and its page; and the check finds nothing wrong."""
    prompt = ran(site, ann, program)
    assert (prompt.state, prompt.stop_reason) == ended
    assert prompt.conversation.active_prompt is None
    last = EventReader(prompt.conversation_id, 0).read()[-1]
    assert last.type == f"prompt.{ended[0]}"
    assert f'"stop_reason":"{ended[1]}"' in last.text
    assert [str(problem) for problem in verify(prompt.conversation_id).problems] == []
    shown = with_key(ann).get(reverse("api-prompt", args=[prompt.pk])).json()
    assert (shown["state"], shown["stop_reason"]) == ended
    assert [output["text"] for output in shown["outputs"]] == ([told] if told else [])


def test_a_model_that_asks_for_a_tool_named_human_asks_nobody(ann: User, site: Site) -> None:
    """Its call fails like that of any unknown tool, and the check does not take it for a gate."""
    prompt = site.runs(ann, says("", call("human", question="May I?")), says("Done."))
    assert (prompt.state, prompt.stop_reason) == ("completed", "text")
    assert [str(problem) for problem in verify(prompt.conversation_id).problems] == []
