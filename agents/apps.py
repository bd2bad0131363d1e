"""The Django app `agents`: what agents can do."""

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import m2m_changed, post_delete, post_migrate, post_save, pre_delete


class AgentsConfig(AppConfig):
    """The app with the tools, the plugins and the model providers."""

    name = "agents"
    label = "agents"

    def ready(self) -> None:
        """Register the checks and discover every tool and plugin. The process does not start if two share a name.

        What can be searched is written down from now on, and anew after a migration if its language has changed.

        Nothing is probed yet: that takes a moment, and few processes need it.
        """
        from agents import checks, discovery  # noqa: F401 - checks register themselves
        from agents.models.blueprint import Blueprint, restrict
        from agents.plugins.memory.keeping import person_goes
        from agents.plugins.shell import probe
        from agents.search import rebuilding

        probe.keep_place(settings.AGENTSITE_WORKSPACES, settings.AGENTSITE_SANDBOX_UID)
        discovery.installed()
        m2m_changed.connect(restrict, sender=Blueprint.groups.through)
        pre_delete.connect(person_goes, sender=settings.AUTH_USER_MODEL)
        post_migrate.connect(rebuilding.rebuild_if_outdated, sender=self)
        for model in rebuilding.tables():
            post_save.connect(rebuilding.saved, sender=model)
            post_delete.connect(rebuilding.deleted, sender=model)
