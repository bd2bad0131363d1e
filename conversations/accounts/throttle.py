"""Throttling of sign-ins: within 15 minutes, five wrong passwords per name and address, and fifty per address.

A lock applies to one address only, so nobody can lock another person out from elsewhere. An address that everybody may
share, that of a proxy which no setting declares, has no limit of its own. The settings name these functions;
django-axes calls them, and keeps the failures in the database for as long as they count.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.db.models import Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

Address = IPv4Address | IPv6Address
ADDRESS_LIMIT = 50
"""Failures allowed from one address, whatever the names. A whole office may share it."""
NETWORK_BITS = 64
"""The length of an IPv6 network: whoever has one address has all that begin with these bits."""
INSIDE = [
    ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
]
"""Where proxies can be: this machine, and networks that cannot be reached from outside."""


class Attempts(AxesDatabaseHandler):  # type: ignore[misc]
    """The axes handler for failed sign-ins, with a separate limit per address."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the failures of this name from this address; the full limit if the address itself is locked."""
        of_name, of_address = self._counts(request, credentials)
        return settings.AXES_FAILURE_LIMIT if of_address >= ADDRESS_LIMIT else of_name

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """After a success, forget this name's failures from this address; return how many.

        Failures of other names stay. Otherwise, anybody with an account could reset the count by signing in, and go on
        guessing other people's passwords.
        """
        of_name, _of_address = self.filter_user_attempts(request, credentials)
        count: int = of_name.delete()[0]
        return count

    def locked_until(self, request: HttpRequest, credentials: dict[str, Any] | None) -> datetime:
        """Return when this name can be tried again from this address."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        _of_name, of_address = self._counts(request, credentials)
        counted = by_address if of_address >= ADDRESS_LIMIT else by_name
        last: datetime | None = counted.aggregate(last=Max("attempt_time"))["last"]
        cool_off: timedelta = settings.AXES_COOLOFF_TIME
        return (last or timezone.now()) + cool_off

    def tries_left(self, request: HttpRequest, credentials: dict[str, Any] | None) -> int:
        """Return how many more failures lock this name out at this address."""
        of_name, of_address = self._counts(request, credentials)
        return max(0, min(settings.AXES_FAILURE_LIMIT - of_name, ADDRESS_LIMIT - of_address))

    def _counts(self, request: HttpRequest, credentials: dict[str, Any] | None) -> tuple[int, int]:
        """Return the failures of this name from this address, and those of any name that count against the address."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        # Nothing counts against an address everybody may share: fifty failures of strangers would lock everyone out.
        return _failures(by_name), 0 if may_be_shared(request) else _failures(by_address)


def _failures(attempts: QuerySet[Any]) -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def client_address(request: HttpRequest) -> str | None:
    """Return the address a request comes from, or its network for IPv6; None if unknown.

    Behind declared proxies, it is the address that the outermost one wrote; otherwise, whoever opened the connection.
    """
    address = _forwarded(request) or _peer(request)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), NETWORK_BITS), strict=False).network_address)
    return str(address) if address else None


def may_be_shared(request: HttpRequest) -> bool:
    """Whether everybody may share this address: it could be a proxy's, and no proxy says who is behind it."""
    peer = _peer(request)
    return not _forwarded(request) and (peer is None or any(peer in network for network in INSIDE))


def _forwarded(request: HttpRequest) -> Address | None:
    """Return the address that the outermost declared proxy wrote into X-Forwarded-For; None if there is none.

    Each proxy appends, at the right, the address that connected to it. Anything further left is up to the sender.
    """
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    proxies: int = settings.AGENTSITE_PROXIES
    return _address(hops[-proxies]) if 0 < proxies <= len(hops) else None


def _peer(request: HttpRequest) -> Address | None:
    return _address(request.META.get("REMOTE_ADDR") or "")


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def tries_left(request: HttpRequest, username: str) -> int:
    """Return how many more wrong passwords lock this name out at the address of this request."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    AxesProxyHandler.update_request(request)
    return handler.tries_left(request, {"username": username})


def forget_failures(username: str) -> None:
    """Let this user sign in from anywhere again, because they proved who they are in another way."""
    AxesProxyHandler.reset_attempts(username=username)


def locked(request: HttpRequest, _response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """Return the page that says when to try again (429), in place of the view's response."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    until = handler.locked_until(request, credentials)
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    page = render(request, "registration/locked.html", {"minutes": math.ceil(seconds / 60)}, status=429)
    page.headers["Retry-After"] = str(seconds)
    return page
