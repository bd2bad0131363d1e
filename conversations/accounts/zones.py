"""Time zones of people, by their names in the time zone database."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.contrib.auth.models import User

from conversations.models import Account

REGIONS = (
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"
)  # fmt: skip
"""The first parts of the names that are offered. The others, such as US/Pacific, are old names of the same zones."""


def zone_of(user: User) -> ZoneInfo:
    """Return the time zone of a person: the one that they chose, or the site's."""
    return known_zone(Account.objects.filter(user=user).values_list("zone", flat=True).first() or "")


def known_zone(name: str) -> ZoneInfo:
    """Return the time zone of this name; the site's for "", and for one that this machine does not know."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(settings.TIME_ZONE)


@cache
def zones_by_region() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the zones that can be chosen, by region: the name of each, and how it reads."""
    names = sorted(name for name in available_timezones() if name.partition("/")[0] in REGIONS)
    regions: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        region, _, place = name.partition("/")
        regions.setdefault(region, []).append((name, place.replace("_", " ").replace("/", ", ")))
    return [*regions.items(), ("Universal time", [("UTC", "UTC")])]
