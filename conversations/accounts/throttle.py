"""Throttling of sign-ins: within 15 minutes, five wrong passwords per name and address, fifty per address, and a
hundred or two per network.

A lock applies to one address or its network only, so nobody can lock another person out from elsewhere. An address that
everybody may share, that of a proxy which no setting declares, has a limit of a thousand: a stranger behind it cannot
shut the site with a few wrong passwords, nor go on for ever. The settings name these functions; django-axes calls them,
and keeps the failures in the database for as long as they count.

Each sign-in has a row of its own from before its password is looked at, which takes a while: whoever guesses many times
at once would otherwise have none of them counted meanwhile. Those under way take up the limits like failures, but only
for as long as they are under way. A success leaves nothing, and forgets only failures that had ended by then.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from asgiref.sync import sync_to_async
from axes.attempts import get_cool_off_threshold
from axes.backends import AxesStandaloneBackend
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

Address = IPv4Address | IPv6Address
ADDRESS_LIMIT = 50
"""Failures allowed from one address, whatever the names. A whole office may share it."""
NETWORK_LIMIT = 100
"""Failures allowed from a /24 of IPv4 or a /56 of IPv6: 256 addresses or /64 networks, which one customer may have."""
SITE_LIMIT = 200
"""Failures allowed from a /48 of IPv6. A company may have all of it (RFC 6177), or a provider 256 customers in it."""
SHARED_LIMIT = 1000
"""Failures allowed from an address that everybody may share."""
UNDER_WAY_MOST = timedelta(minutes=1)
"""How long an attempt can be under way. It takes a fraction of a second, even where many are."""
AGAIN_SECONDS = 1
"""When to try again where too many are under way."""
_BEGINNING = 0x5167_1E
"""The number of the lock on PostgreSQL under which attempts begin one after the other."""
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
_HOP = re.compile(r"\[(?P<six>[^]]*)\](:\d+)?|(?P<four>[\d.]+):\d+|(?P<bare>.*)")
"""An address in X-Forwarded-For. Some proxies write the port, too, as in `192.0.2.1:52344` or `[2001:db8::1]:443`."""


class PasswordBackend(AxesStandaloneBackend, ModelBackend):  # type: ignore[misc]
    """Django's users and passwords, with as many tries as the limits allow."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> User | None:
        """Return the user whose password this is. Raises PermissionDenied if too many failed to look at this one."""
        super().authenticate(request, username, password, **more)  # raises an error without a request
        if request is None or username is None or password is None:
            return None
        handler: Attempts = AxesProxyHandler.get_implementation()
        with handler.counted(request, {"username": username}) as attempt:
            user: User | None = ModelBackend.authenticate(self, request, username, password)
            attempt.succeeded = user is not None
            return user

    async def aauthenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> User | None:
        """Do the same. Django's own would look at the password by itself."""
        return await sync_to_async(self.authenticate)(request, username, password, **more)


class TooManyAttempts(PermissionDenied):
    """The password was not looked at: so many sign-ins are being tried that it would be one too many."""


class Attempts(AxesDatabaseHandler):  # type: ignore[misc]
    """The axes handler for failed sign-ins, with separate limits per address and per network.

    Of the columns of its table, `failures_since_start` is 0 while a sign-in is under way and 1 once it failed, and
    `user_agent` has a random text, because axes keeps one row of each browser.
    """

    @contextmanager
    def counted(self, request: HttpRequest, credentials: dict[str, Any]) -> Iterator[Attempt]:
        """Count this sign-in as under way in the block, and as a failure after it, unless it `succeeded`.

        Raises TooManyAttempts if it exceeds a limit together with those that are counted by now. Whatever arrives at
        the same time, no more passwords are looked at than a limit allows.
        """
        self.clean_expired_user_attempts(request, credentials)
        this = AccessAttempt.objects.filter(pk=self._begin(request, credentials))
        attempt = Attempt()
        try:
            yield attempt
        finally:
            if attempt.succeeded:
                this.delete()
            else:
                this.update(failures_since_start=1)

    def _begin(self, request: Any, credentials: dict[str, Any]) -> int:
        """Store that this sign-in is under way. Returns the row's key. Raises TooManyAttempts."""
        with _one_at_a_time():
            if any(each.full for each in self._limits(request, credentials)):
                request.axes_locked_out = True
                raise TooManyAttempts
            row = AccessAttempt.objects.create(
                username=get_client_username(request, credentials),
                ip_address=request.axes_ip_address,
                user_agent=secrets.token_hex(16),
                failures_since_start=0,
            )
        return int(row.pk)

    def user_login_failed(
        self, sender: object, credentials: dict[str, Any], request: Any = None, **more: object
    ) -> None:
        """Lock the name or the address out if a limit is reached. The failure itself is counted by now."""
        if request is None:
            return
        request.axes_failures_since_start = self.get_failures(request, credentials)
        if request.axes_locked_out or request.axes_failures_since_start >= settings.AXES_FAILURE_LIMIT:
            request.axes_locked_out, request.axes_credentials = True, credentials
            name = get_client_username(request, credentials)
            user_locked_out.send("axes", request=request, username=name, ip_address=request.axes_ip_address)

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
        count: int = of_name.filter(_ended()).delete()[0]
        return count

    def locked_until(self, request: HttpRequest, credentials: dict[str, Any] | None) -> datetime | None:
        """Return when this name can be tried again from this address; None if it is as soon as others have ended."""
        return max((each.opens for each in self._limits(request, credentials) if each.reached), default=None)

    def tries_left(self, request: HttpRequest, credentials: dict[str, Any] | None) -> int:
        """Return how many more failures lock this name out at this address."""
        return max(0, min(each.most - each.taken for each in self._limits(request, credentials)))

    def _limits(self, request: HttpRequest, credentials: dict[str, Any] | None) -> list[_Limit]:
        """Return the limits that hold for this name at this address: first its own, then those whatever the name."""
        by_name, by_address = self.get_user_attempts(request, credentials)
        limits = [_Limit.of(by_name, settings.AXES_FAILURE_LIMIT)]
        if may_be_shared(request):
            return [*limits, _Limit.of(by_address, SHARED_LIMIT)]
        limits.append(_Limit.of(by_address, ADDRESS_LIMIT))
        recent = AccessAttempt.objects.filter(attempt_time__gte=get_cool_off_threshold(request))
        networks = _networks(client_address(request))
        return [*limits, *(_Limit.of(recent.filter(inside), most) for inside, most in networks)]


@dataclass
class Attempt:
    """A sign-in that is being tried."""

    succeeded: bool = False


@dataclass(frozen=True)
class _Limit:
    """Attempts that are counted together: how many failed, how many with those under way, and how many are allowed."""

    attempts: QuerySet[Any]
    failures: int
    taken: int
    most: int

    @classmethod
    def of(cls, attempts: QuerySet[Any], most: int) -> _Limit:
        found = attempts.aggregate(failures=Count("pk", filter=_ended()), taken=Count("pk"))
        return cls(attempts, found["failures"], found["taken"], most)

    @property
    def reached(self) -> bool:
        """Whether it is reached by those that failed."""
        return self.failures >= self.most

    @property
    def full(self) -> bool:
        """Whether it is, together with those that are under way."""
        return self.taken >= self.most

    @property
    def opens(self) -> datetime:
        """When so many of the failures no longer count that it is not reached."""
        times = self.attempts.filter(_ended()).order_by("-attempt_time").values_list("attempt_time", flat=True)
        last_to_go: datetime = next(iter(times[self.most - 1 : self.most]), timezone.now())
        cool_off: timedelta = settings.AXES_COOLOFF_TIME
        return last_to_go + cool_off


def _ended() -> Q:
    """Return which attempts have failed, or ended without a word: a process may die while it looks at a password."""
    return Q(failures_since_start__gt=0) | Q(attempt_time__lt=timezone.now() - UNDER_WAY_MOST)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Open a transaction in which nobody else begins a sign-in. On SQLite every transaction has the database's lock."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_BEGINNING])
        yield


def _networks(address: str | None) -> Iterator[tuple[Q, int]]:
    """Yield which stored addresses are of the same network as this one, with its limit. They are stored as texts."""
    if address and ":" in address:
        households = IPv6Network((address, 56), strict=False).subnets(new_prefix=NETWORK_BITS)
        yield Q(ip_address__in=[str(each.network_address) for each in households]), NETWORK_LIMIT
        # Each is one of `a:b:c:d::`, and `a:b:c::`, or shorter, where d is zero.
        site = IPv6Network((address, 48), strict=False).network_address
        groups = (f"{int(group, 16):x}:" for group in site.exploded.split(":")[:3])
        yield Q(ip_address__startswith="".join(groups)) | Q(ip_address=str(site)), SITE_LIMIT
    elif address:
        yield Q(ip_address__startswith=f"{address.rpartition('.')[0]}."), NETWORK_LIMIT


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
    hop = _HOP.fullmatch(text.strip())
    try:
        address = ip_address((hop and (hop["six"] or hop["four"] or hop["bare"])) or "")
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def tries_left(request: HttpRequest, username: str) -> int:
    """Return how many more wrong passwords lock this name out at the address of this request."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    AxesProxyHandler.update_request(request)
    return handler.tries_left(request, {"username": username})


def password_problem(request: HttpRequest, password: str) -> str:
    """Return why this is not accepted as the password of the signed-in user, for a sentence; "" if it is.

    A wrong one is a failed sign-in. Whoever is locked out keeps the page, with what they typed there.
    """
    name = request.user.get_username()
    if authenticate(request, username=name, password=password) is not None:
        return ""
    if not getattr(request, "axes_locked_out", False):
        left = tries_left(request, name)
        return f"this is not your password. {left} attempt{'' if left == 1 else 's'} left."
    request.axes_locked_out = False  # type: ignore[attr-defined]  # else the middleware answers with a page of its own
    minutes, _ = _locked_for(request, {"username": name})
    again = f"in {minutes} minute{'' if minutes == 1 else 's'}" if minutes else "in a moment"
    return f"too many passwords were tried. Try again {again}."


def forget_failures(username: str) -> None:
    """Let this user sign in from anywhere again, because they proved who they are in another way."""
    AccessAttempt.objects.filter(_ended(), username=username).delete()


def locked(request: HttpRequest, _response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """Return the page that says when to try again (429), in place of the view's response."""
    minutes, seconds = _locked_for(request, credentials)
    page = render(request, "registration/locked.html", {"minutes": minutes}, status=429)
    page.headers["Retry-After"] = str(seconds)
    return page


def _locked_for(request: HttpRequest, credentials: dict[str, Any] | None) -> tuple[int, int]:
    """Return in how many minutes, and seconds, to try again; in 0 minutes if only too many are under way."""
    handler: Attempts = AxesProxyHandler.get_implementation()
    until = handler.locked_until(request, credentials)
    seconds = max(AGAIN_SECONDS, math.ceil((until - timezone.now()).total_seconds())) if until else AGAIN_SECONDS
    return (math.ceil(seconds / 60) if until else 0), seconds
