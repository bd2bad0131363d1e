"""The Django app `agents`: what agents can do."""

from django.apps import AppConfig
from django.conf import settings


class AgentsConfig(AppConfig):
    """The app with the tools, the plugins and the model providers."""

    name = "agents"
    label = "agents"

    def ready(self) -> None:
        """Register the checks and discover every tool and plugin. The process does not start if two share a name.

        Nothing is probed yet: that takes a moment, and few processes need it.
        """
        from agents import checks, discovery  # noqa: F401 - checks register themselves
        from agents.plugins.shell import probe

        probe.keep_place(settings.AGENTSITE_WORKSPACES, settings.AGENTSITE_SANDBOX_UID)
        discovery.installed()
