"""Checks of how the site can be reached: by `manage.py check --deploy`, and in the log of a web server that starts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, run_checks
from django.core.checks import register as register_check

logger = logging.getLogger(__name__)
REACH = "reach"
"""The tag of these checks."""


def register() -> None:
    """Register the checks."""
    register_check(names_are_named, REACH, deploy=True)
    register_check(network_is_encrypted, REACH, deploy=True)


def names_are_named(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that ALLOWED_HOSTS has names, and no name stands for all."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "ALLOWED_HOSTS=* lets a request choose the site's name, and other sites' names can be made to lead here.",
            hint="List the host names that people type.",
            id="agentsite.W001",
        )
    ]


def network_is_encrypted(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that a site that listens on all addresses is behind a proxy for HTTPS."""
    if not settings.EVERYWHERE or settings.HTTPS:
        return []
    return [
        Warning(
            f"HOST={settings.HOST} without AGENTSITE_HTTPS: passwords and sessions cross the network unencrypted.",
            hint="Put a proxy for HTTPS in front of the site and set AGENTSITE_HTTPS=1, or HOST=127.0.0.1.",
            id="agentsite.W002",
        )
    ]


def log_reach() -> None:
    """Log what these checks find."""
    for found in run_checks(tags=[REACH], include_deployment_checks=True):
        if not found.is_silenced():
            logger.warning("%s %s", found.msg, found.hint)
