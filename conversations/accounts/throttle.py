"""Throttling of sign-ins: within 15 minutes, five wrong passwords per name and address, fifty per address, and a
hundred per network.

A lock applies to one address or its network only, so nobody can lock another person out from elsewhere. An address that
everybody may share, that of a proxy which no setting declares, has a limit of a thousand: a stranger behind it cannot
shut the site with a few wrong passwords, nor go on for ever. The settings name these functions; django-axes calls them,
and keeps the failures in the database for as long as they count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

Address = IPv4Address | IPv6Address
ADDRESS_LIMIT = 50
"""Failures allowed from one address, whatever the names. A whole office may share it."""
NETWORK_LIMIT = 100
"""Failures allowed from one network of IPv4, the 256 addresses that begin alike: one customer may have all of them."""
SHARED_LIMIT = 1000
"""Failures allowed from an address that everybody may share."""
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
    """The axes handler for failed sign-ins, with separate limits per address and per network."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the failures of this name from this address; the full limit if its address or network is locked."""
        limits = self._limits(request, credentials)
        return settings.AXES_FAILURE_LIMIT if any(each.reached for each in limits) else limits[0].failures

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
        limits = self._limits(request, credentials)
        last = max((each.last for each in limits if each.reached and each.last), default=timezone.now())
        cool_off: timedelta = settings.AXES_COOLOFF_TIME
        return last + cool_off

    def tries_left(self, request: HttpRequest, credentials: dict[str, Any] | None) -> int:
        """Return how many more failures lock this name out at this address."""
        return max(0, min(each.most - each.failures for each in self._limits(request, credentials)))

    def _limits(self, request: HttpRequest, credentials: dict[str, Any] | None) -> list[_Limit]:
        """Return the limits that hold for this name at this address: first its own, then those whatever the name."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        limits = [_Limit.of(by_name, settings.AXES_FAILURE_LIMIT)]
        if may_be_shared(request):
            return [*limits, _Limit.of(by_address, SHARED_LIMIT)]
        limits.append(_Limit.of(by_address, ADDRESS_LIMIT))
        if beginning := _network(client_address(request)):
            since = get_cool_off_threshold(request)
            alike = AccessAttempt.objects.filter(ip_address__startswith=beginning, attempt_time__gte=since)
            limits.append(_Limit.of(alike, NETWORK_LIMIT))
        return limits


@dataclass(frozen=True)
class _Limit:
    """How many failures are counted together, how many are allowed, and when the last one was."""

    failures: int
    most: int
    last: datetime | None

    @classmethod
    def of(cls, attempts: QuerySet[Any], most: int) -> _Limit:
        found = attempts.aggregate(failures=Sum("failures_since_start"), last=Max("attempt_time"))
        return cls(found["failures"] or 0, most, found["last"])

    @property
    def reached(self) -> bool:
        return self.failures >= self.most


def _network(address: str | None) -> str:
    """Return how the addresses of the same network of IPv4 begin; "" for IPv6, where the network is the address."""
    return f"{address.rpartition('.')[0]}." if address and ":" not in address else ""


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
