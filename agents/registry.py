"""The site's registry of policies, by name: the agent, the model, all tools, and the policies of apps."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from agents import discovery
from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.execution.effect import as_policy
from agents.engine.interfaces.provider import Provider
from agents.engine.root import AGENT
from agents.engine.runtime.registry import PolicyRegistry
from agents.providers.chat.protocol import Chat
from agents.providers.common.server import ModelServer
from agents.providers.json.protocol import JsonProtocol
from agents.providers.responses.protocol import Responses


@cache
def protocols() -> dict[str, Provider]:
    """Return the site's two providers, one for each way in which a model can ask for tools (R1).

    `native` uses the API's own tool calls, `json` has them written as text. They share connections: closing one
    closes both.
    """
    models = {"normal": settings.AGENTSITE_MODEL_NORMAL, "high": settings.AGENTSITE_MODEL_HIGH}
    if settings.AGENTSITE_MODEL_FALLBACK:
        models["fallback"] = settings.AGENTSITE_MODEL_FALLBACK
    server = ModelServer(
        settings.OPENAI_API_KEY,
        settings.OPENAI_BASE_URL or None,
        models=models,
        needs_user=settings.AGENTSITE_MODEL_NEEDS_USER,
    )
    native = Responses(server) if settings.AGENTSITE_MODEL_API == "responses" else Chat(server)
    return {"native": native, "json": JsonProtocol(server)}


def provider() -> Provider:
    """Return the provider that the settings name, for agents that do not choose one."""
    return protocols()["json" if settings.AGENTSITE_MODEL_API == "json" else "native"]


@cache
def policies() -> PolicyRegistry:
    """Return the registry that turns run with. Raises RegistryError if two policies share a name."""
    found = discovery.installed()
    registry = PolicyRegistry()
    registry.register(AGENT, description="Answers a message, with tools and approvals.")(
        agent(tools=found.offered, plugins=found.plugins)
    )
    registry.register("model", description="Asks the model once.")(model(provider(), protocols()))
    for tool in found.tools:
        registry.register(tool.name, description=tool.description)(as_policy(tool))
    for policy in (*found.policies, *discovery.added()):
        registry.add(policy)
    return registry
