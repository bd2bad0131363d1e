"""Rate limits: for one user, with all their keys and pages together, or for one address of unknown clients.

Requests are counted in Django's cache. By default each web process has its own, so that several processes let
through several times as much. A shared cache in the settings makes the limits exact.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from conversations.accounts.throttle import client_address


class Requests(SimpleRateThrottle):  # type: ignore[misc]
    """All requests: AGENTSITE_API_REQUESTS a minute."""

    scope = "requests"
    setting = "AGENTSITE_API_REQUESTS"

    def get_rate(self) -> str:
        """Return the limit."""
        return f"{getattr(settings, self.setting)}/min"

    def get_cache_key(self, request: Request, view: Any) -> str:
        """Return one key for each user, who may have many API keys, and for each address of unknown clients."""
        known = request.user and request.user.is_authenticated
        who = f"user-{request.user.pk}" if known else f"address-{client_address(request)}"
        key: str = self.cache_format % {"scope": self.scope, "ident": who}
        return key


class Starts(Requests):
    """Requests that start turns: AGENTSITE_API_STARTS a minute."""

    scope = "starts"
    setting = "AGENTSITE_API_STARTS"
