"""Times for people: relative within a day, then the date."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format

MINUTE, HOUR, DAY = 60, 3600, 86_400


def ago(time: datetime) -> str:
    """Return how long ago it was: "just now", "2 min ago", "3 h ago", "12 Nov, 16:22"."""
    seconds = (timezone.now() - time).total_seconds()
    if seconds < MINUTE:
        return "just now"
    return f"{span(seconds)} ago" if seconds < DAY else on(time)


def ahead(time: datetime) -> str:
    """Return how far away it is, rounded: "in 48 min", "in 3 h", "on 12 Nov, 16:22"; "now" once it has come."""
    seconds = (time - timezone.now()).total_seconds()
    if seconds < 1:
        return "now"
    unit = MINUTE if seconds < HOUR else HOUR
    return f"in {span(max(round(seconds / unit) * unit, MINUTE))}" if seconds <= DAY else f"on {on(time)}"


def at(time: datetime) -> str:
    """Return a time to come by the clock: "at 14:12", "tomorrow at 09:10", "on 12 Nov at 16:22"."""
    local = timezone.localtime(time)
    days = (local.date() - timezone.localdate()).days
    clock = f"at {date_format(local, 'H:i')}"
    if days == 0:
        return clock
    return f"tomorrow {clock}" if days == 1 else f"on {_date(local)} {clock}"


def span(seconds: float) -> str:
    """Return a length of time: "4 s", "2 min", "3 h", "2 days"."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min"
    if seconds < 2 * DAY:
        return f"{int(seconds // HOUR)} h"
    return f"{int(seconds // DAY)} days"


def day(time: datetime, more: str = "") -> str:
    """Return the day: "Today", "Yesterday", "12 Nov". `more`: a format for what follows, as in "Today, 16:22"."""
    local = timezone.localtime(time)
    past = (timezone.localdate() - local.date()).days
    name = {0: "Today", 1: "Yesterday"}.get(past) or _date(local)
    return f"{name}, {date_format(local, more)}" if more else name


def on(time: datetime) -> str:
    """Return the date and the time of day."""
    local = timezone.localtime(time)
    return f"{_date(local)}, {date_format(local, 'H:i')}"


def _date(local: datetime) -> str:
    """Return the day, with its year if that is another one."""
    return date_format(local, "j M" if local.year == timezone.localtime().year else "j M Y")


def took(started: str, ended: str) -> str:
    """Return the time between two ISO times; "" if one is missing."""
    if not (started and ended):
        return ""
    return span((datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds())
