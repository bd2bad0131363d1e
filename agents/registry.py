"""Every policy of the site by name: the agent, the model, and all tools."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from agents import discovery
from agents.engine.model import model
from agents.engine.policy import PolicyRegistry
from agents.engine.provider import Provider
from agents.engine.turn import agent
from agents.providers.responses import Responses


@cache
def provider() -> Provider:
    """The model API that the settings name."""
    return Responses(
        settings.OPENAI_API_KEY,
        settings.OPENAI_BASE_URL or None,
        models={"normal": settings.AGENTSITE_MODEL_NORMAL, "high": settings.AGENTSITE_MODEL_HIGH},
    )


@cache
def policies() -> PolicyRegistry:
    """The registry that turns run with. Raises RegistryError where two share a name."""
    found = discovery.installed()
    registry = PolicyRegistry()
    registry.register("agent", description="Answers, with tools and approvals.")(
        agent(tools=lambda: found.tools, plugins=lambda: [plugin() for plugin in found.plugins])
    )
    registry.register("model", description="Asks the model once.")(model(provider()))
    for tool in found.tools:
        registry.register(tool.name, description=tool.description)(tool)
    return registry
