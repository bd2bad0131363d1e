"""The Django app of the capability side."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Tools, plugins, the models of language."""

    name = "agents"
    label = "agents"

    def ready(self) -> None:
        """Register the checks and find every tool and plugin: where two share a name, the process does not start."""
        from agents import checks, discovery  # noqa: F401 - checks register themselves

        discovery.installed()
