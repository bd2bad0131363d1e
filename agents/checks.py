"""What `manage.py check` says about the reach of commands that agents run."""

from collections.abc import Sequence
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from agents.plugins.shell import sandbox


@register(Tags.security, deploy=True)
def sandbox_works(app_configs: Sequence[AppConfig] | None, **options: object) -> list[CheckMessage]:
    """agents.W001: commands run with the rights of the worker."""
    if sandbox.works():
        return []
    return [
        Warning(
            "Commands that agents run are not sandboxed: they have the worker's rights, its network and its files.",
            hint="Install bubblewrap 0.8 or newer for the worker, and allow its user to make user namespaces.",
            id="agents.W001",
        )
    ]


@register(Tags.security)
def data_is_out_of_sight(app_configs: Sequence[AppConfig] | None, **options: object) -> list[CheckMessage]:
    """agents.E001: database and key lie where every sandboxed command reads."""
    folder = getattr(settings, "AGENTSITE_DATA", None)
    if folder is None or not sandbox.shows(Path(folder)):
        return []
    return [
        Error(
            f"AGENTSITE_DATA is {folder}, among the programs that every sandboxed command can read.",
            hint="Move it out of /usr, /bin, /sbin and /lib.",
            id="agents.E001",
        )
    ]
