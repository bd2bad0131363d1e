"""Django's admin as an app, with our own site in place of its default one."""

from django.contrib.admin.apps import AdminConfig


class AdminAppConfig(AdminConfig):
    """The admin. Its site is no module of `conversations.admin`, which registers its pages while it is imported."""

    default_site = "agentsite.admin_site.Site"
