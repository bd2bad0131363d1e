"""The conversations app."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate, post_save

from agents.engine.secrets import keep_secret


class ConversationsConfig(AppConfig):
    """The app that holds the record and everything people use."""

    name = "conversations"
    label = "conversations"

    def ready(self) -> None:
        """Hide the site's secrets; after each migration, install the triggers and create the default group."""
        from conversations.accounts import groups, reauthentication
        from conversations.approvals import grants
        from conversations.database import changes, checks, guard

        keep_secret(settings.AGENTSITE_SECRETS)
        post_migrate.connect(guard.install, sender=self)
        post_migrate.connect(changes.install, sender=self)
        post_migrate.connect(groups.create_members_group, sender=self)  # after auth has created the permissions
        post_save.connect(groups.add_to_members, sender=settings.AUTH_USER_MODEL)
        user_logged_in.connect(reauthentication.remember_sign_in)
        checks.register()
        grants.register()
