"""The Django app `agents`: what agents can do."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The app with the tools, the plugins and the model providers."""

    name = "agents"
    label = "agents"

    def ready(self) -> None:
        """Register the checks and discover every tool and plugin. The process does not start if two share a name."""
        from agents import checks, discovery  # noqa: F401 - checks register themselves

        discovery.installed()
