"""How often a password may be tried: five times per name and address, and fifty per address, within a quarter hour.

Who is locked out is so from this address alone: nobody can keep another out from somewhere else. What may be the
address of everybody, that of a proxy which no setting declares, has no limit of its own. The settings name these
functions; django-axes calls them, and keeps the failures in the database for as long as they count.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.db.models import Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

if TYPE_CHECKING:  # axes ships no types

    class DatabaseHandler:
        """Of axes: keeps failures in the database."""

        def get_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None) -> list[QuerySet[Any]]:
            """The failures that count, for each of AXES_LOCKOUT_PARAMETERS."""

        def filter_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None) -> list[QuerySet[Any]]:
            """The same, those included that no longer count."""
else:
    from axes.handlers.database import AxesDatabaseHandler as DatabaseHandler

Address = IPv4Address | IPv6Address
ADDRESS_LIMIT = 50
"""Failures from one address, whatever the names: a whole office may share it."""
NETWORK_BITS = 64
"""Of an IPv6 address: whoever has one has all that begin with these bits."""
INSIDE = [
    ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
]
"""Where proxies stand: this machine, and networks that nobody reaches from outside."""


class Attempts(DatabaseHandler):
    """Failures to sign in, with a limit of its own for an address."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Failures of this name from this address; as many as lock where the address has too many of any."""
        of_name, of_address = self._counts(request, credentials)
        return settings.AXES_FAILURE_LIMIT if of_address >= ADDRESS_LIMIT else of_name

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """After a success, forget this name's failures from here.

        Those of other names stay: or whoever has an account could sign in now and then, and guess others' for ever.
        """
        of_name, _of_address = self.filter_user_attempts(request, credentials)
        count, _ = of_name.delete()
        return count

    def locked_until(self, request: HttpRequest, credentials: dict[str, Any] | None) -> datetime:
        """When this name can be tried again from this address."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        _of_name, of_address = self._counts(request, credentials)
        counted = by_address if of_address >= ADDRESS_LIMIT else by_name
        last: datetime | None = counted.aggregate(last=Max("attempt_time"))["last"]
        cool_off: timedelta = settings.AXES_COOLOFF_TIME
        return (last or timezone.now()) + cool_off

    def tries_left(self, request: HttpRequest, credentials: dict[str, Any] | None) -> int:
        """How many more failures lock this name out here."""
        of_name, of_address = self._counts(request, credentials)
        return max(0, min(settings.AXES_FAILURE_LIMIT - of_name, ADDRESS_LIMIT - of_address))

    def _counts(self, request: HttpRequest, credentials: dict[str, Any] | None) -> tuple[int, int]:
        """Failures of the name from this address, and those of any name that count against the address."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        # Against what may be everybody's address nothing counts: fifty failures of strangers would keep all people out.
        return _failures(by_name), 0 if may_be_shared(request) else _failures(by_address)


def _failures(attempts: QuerySet[Any]) -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from: the address, of IPv6 the network; None where that is not known.

    Behind proxies of ours that is what the outermost of them wrote; without any it is whoever opened the connection.
    """
    address = _forwarded(request) or _peer(request)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), NETWORK_BITS), strict=False).network_address)
    return str(address) if address else None


def may_be_shared(request: HttpRequest) -> bool:
    """Whether all people may come from this address: a proxy could have it, and none says who is behind it."""
    peer = _peer(request)
    return not _forwarded(request) and (peer is None or any(peer in network for network in INSIDE))


def _forwarded(request: HttpRequest) -> Address | None:
    """The address that the outermost proxy of ours wrote into X-Forwarded-For; None where there is none.

    Each proxy adds at the right the address that it was asked from. What stands further left is the sender's to choose.
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
    """How many more wrong passwords lock this name out at the address of this request."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    AxesProxyHandler.update_request(request)
    return handler.tries_left(request, {"username": username})


def forget_failures(username: str) -> None:
    """Let this person sign in from everywhere again: they proved who they are in another way."""
    AxesProxyHandler.reset_attempts(username=username)


def locked(request: HttpRequest, _response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """The page that says when to try again (429), instead of whatever the view answered."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    until = handler.locked_until(request, credentials)
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    page = render(request, "registration/locked.html", {"minutes": math.ceil(seconds / 60)}, status=429)
    page.headers["Retry-After"] = str(seconds)
    return page
