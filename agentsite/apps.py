"""The app that is the site itself: its commands, its checks, and what it reads of forms."""

from django.apps import AppConfig


class AgentsiteConfig(AppConfig):
    """The Django project as an app."""

    name = "agentsite"

    def ready(self) -> None:
        """Register the checks, and limit the headers of the parts of forms."""
        from agentsite import checks, parts

        checks.register()
        parts.install()
