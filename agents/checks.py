"""System checks: how far the commands that agents run can reach. Django runs them with `manage.py check`."""

import os
from collections.abc import Sequence
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from agents.plugins.shell import probe, sandbox


@register(Tags.security, deploy=True)
def check_sandbox(app_configs: Sequence[AppConfig] | None, **options: object) -> list[CheckMessage]:
    """Warn with agents.W001 if commands run without a sandbox, with the rights of the worker."""
    if probe.sandbox():
        return []
    return [
        Warning(
            "Commands that agents run are not sandboxed: they have the worker's rights, network access and files.",
            hint="Install bubblewrap 0.8 or newer for the worker, and allow its user to create user namespaces."
            f" It was tried in {settings.AGENTSITE_WORKSPACES}: {probe.why_not()}",
            id="agents.W001",
        )
    ]


@register(Tags.security, deploy=True)
def check_root(app_configs: Sequence[AppConfig] | None, **options: object) -> list[CheckMessage]:
    """Warn with agents.W002 if this is root: then only sandboxed commands are those of another user."""
    if os.geteuid() != 0:
        return []
    return [
        Warning(
            "The site runs as root: a flaw in it, or in a tool, gives away the machine. Only sandboxed commands run as"
            " another user.",
            hint="Run the site as a user of its own, to whom the data folder belongs.",
            id="agents.W002",
        )
    ]


@register(Tags.security)
def check_data_folder(app_configs: Sequence[AppConfig] | None, **options: object) -> list[CheckMessage]:
    """Fail with agents.E001 if every sandboxed command could read the folder of the database and the secret key."""
    folder = getattr(settings, "AGENTSITE_DATA", None)
    if folder is None or not sandbox.exposes(Path(folder)):
        return []
    return [
        Error(
            f"AGENTSITE_DATA is {folder}, a folder that every sandboxed command can read.",
            hint="Move it out of /usr, /bin, /sbin and /lib, where sandboxed commands find their programs.",
            id="agents.E001",
        )
    ]
