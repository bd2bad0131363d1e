"""How often one person may ask, with all their keys and pages together, or one address at which nobody is known.

Counted in Django's cache: by default in each web process for itself, so that several of them let through as many times
as much. A shared cache in the settings makes the limits exact.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from conversations.accounts.throttle import client_address


class Requests(SimpleRateThrottle):  # type: ignore[misc]
    """All requests, by AGENTSITE_API_REQUESTS a minute."""

    scope = "requests"
    setting = "AGENTSITE_API_REQUESTS"

    def get_rate(self) -> str:
        """The limit."""
        return f"{getattr(settings, self.setting)}/min"

    def get_cache_key(self, request: Request, view: Any) -> str:
        """One count for each person, who may make many keys, and for each address that nobody is known at."""
        known = request.user and request.user.is_authenticated
        who = f"user-{request.user.pk}" if known else f"address-{client_address(request)}"
        key: str = self.cache_format % {"scope": self.scope, "ident": who}
        return key


class Starts(Requests):
    """Requests that start turns, by AGENTSITE_API_STARTS a minute."""

    scope = "starts"
    setting = "AGENTSITE_API_STARTS"
