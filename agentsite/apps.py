"""The app that is the site itself: its commands and its checks."""

from django.apps import AppConfig


class AgentsiteConfig(AppConfig):
    """The Django project as an app."""

    name = "agentsite"

    def ready(self) -> None:
        """Register the checks."""
        from agentsite import checks

        checks.register()
