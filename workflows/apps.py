"""The Django app `workflows`: what people start by name."""

from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """The app with the registry of workflows, their pages and their API."""

    name = "workflows"
    label = "workflows"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Discover the workflows, and let people start them. The process does not start if two share a name."""
        from conversations.erasure.people import goes_with_person
        from conversations.prompts import lines, signals, startable
        from workflows import discovery
        from workflows.batches import starting
        from workflows.models import Batch, RunStar, WorkflowStar
        from workflows.pages.chat import start_line

        for each in discovery.installed().values():
            startable.register(each, each.registered)
        lines.register(start_line)
        for model in (WorkflowStar, RunStar, Batch):
            goes_with_person(model)
        signals.released.connect(starting.advance_of)
        signals.swept.connect(starting.advance_all)
        signals.restored.connect(starting.end_after_restore)
