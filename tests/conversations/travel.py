"""An app's policies on a test site: a program with gated calls and an agent of its own, and an agent with a name."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from pydantic import BaseModel, Field

from agents import Action, Context, Step, ToolError, agent, discovery, policy
from agents.engine.execution.effect import as_policy
from agents.engine.interfaces.provider import Answer
from agents.engine.runtime.policy import Registered
from conversations.models import Conversation, Prompt
from conversations.prompts.start import start_prompt
from tests.conversations.recorded import Site
from tests.engine.cast import site as engine_site
from tests.engine.support import ScriptedProvider


class Trip(BaseModel):
    city: str
    days: int = Field(ge=1, le=30)
    notes: list[str] = []


@policy("travel.plan", input=Trip, title="Plan a trip")
async def plan(action: Action, ctx: Context) -> list[Step]:
    """Read, pay for it with a person's approval, and ask an agent."""
    read = await ctx.tool("fx.read", a=action.payload["days"])
    try:
        await ctx.tool("shell.run", command=f"book {action.payload['city']}")
    except ToolError as error:
        return ctx.done({"booked": False, "why": error.code})
    told = await ctx.agent(f"Say something of {action.payload['city']}.")
    return ctx.done({"booked": True, "read": read, "told": told})


guide = policy("travel.guide", title="Ask the guide")(agent(prompt="You are a guide."))


@policy("travel.words", title="Count words", offered=True)
async def words(action: Action, ctx: Context) -> list[Step]:
    """Count the words of a text, with a person's approval."""
    await ctx.tool("shell.run", command="wc -w")
    return ctx.done(len(str(action.payload.get("text", "")).split()))


ROME = {"city": "Rome", "days": 3}


def owner_of(name: str = "ann") -> User:
    """A user who may start policies."""
    user = User.objects.create_user(name)
    user.user_permissions.add(Permission.objects.get(codename="start_policy"))
    return User.objects.get(pk=user.pk)


APP = (plan, guide, words)


def installed(
    site: Site, monkeypatch: pytest.MonkeyPatch, *script: Answer, policies: tuple[Registered, ...] = APP
) -> ScriptedProvider:
    """Install the app on this site, with a scripted model, which is returned."""
    found = discovery.Found(tuple(site.world.tools()), (), policies)
    monkeypatch.setattr(discovery, "installed", lambda: found)
    registry, provider = engine_site(list(script), found.offered)
    for each in (*policies, *discovery.added()):
        registry.add(each)
    for tool in found.tools:
        registry.register(tool.name)(as_policy(tool))
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    return provider


def started(owner: User, name: str = "travel.plan", payload: Any = None, **more: Any) -> Prompt:
    return start_prompt(
        Conversation(owner=owner), owner, policy=name, payload=ROME if payload is None else payload, **more
    )
