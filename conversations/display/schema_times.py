"""Dates, times and durations of forms: the text that a person sees and types, and the JSON text that is passed.

Schemas say them by `format`, as pydantic does: `date`, `time`, `date-time` and `duration`, all of ISO 8601. A date and
time is typed as the local time, a blank, and its zone: an offset, or a name such as Europe/Berlin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

TIMES = {"date": "date", "time": "time", "date-time": "datetime", "duration": "duration"}
"""The kind of field for each format."""
SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(
    r"(\d{1,9})\s*(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])[\s,]*(?:and\s+)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(\d{1,5}):(\d\d)(?::(\d\d))?")
_ISO = re.compile(r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ]([\d:.]+)(Z|[+-]\d\d:?\d\d)?(?: +(\S+))?")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


class BadTime(ValueError):
    """What was typed is no such time. The message says what to do."""


def time_text(kind: str, value: str) -> str | None:
    """Return the text in a field of this kind for a value; None if the field would not carry it exactly.

    Browsers drop a time with more than milliseconds, and show none of these.
    """
    if "." in value:
        return None
    try:
        text = _TEXTS[kind](value)
        return text if read_time(kind, text) == value or _same(kind, read_time(kind, text), value) else None
    except ValueError:
        return None


def read_time(kind: str, text: str) -> str:
    """Return the value that was typed into a field of this kind. Raises BadTime."""
    return _READ[kind](text.strip())


def local_and_zone(text: str) -> tuple[str, str]:
    """Return the local time and the zone in the text of a date and time, for the two fields that show it."""
    text = text.strip()
    if found := _MOMENT.fullmatch(text):
        day, clock, offset, zone = found.groups(default="")
        return f"{day}T{clock}", zone or ("UTC" if offset == "Z" else offset)
    local, _, zone = text.rpartition(" ")
    return (local, zone) if local else (zone, "")


def _same(kind: str, one: str, other: str) -> bool:
    """Whether two values are the same point in time, or the same time, written in other digits."""
    if kind == "datetime":
        a, b = datetime.fromisoformat(one), datetime.fromisoformat(other)
        return a == b and a.utcoffset() == b.utcoffset()
    return kind == "time" and time.fromisoformat(one) == time.fromisoformat(other)


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise BadTime("Enter a date as year-month-day, such as 2026-11-30.") from error


def _time(text: str) -> str:
    if not re.fullmatch(r"\d\d:\d\d(:\d\d)?", text):
        raise BadTime("Enter a time as hours:minutes, such as 09:30.")
    try:
        return time.fromisoformat(text).isoformat()
    except ValueError as error:
        raise BadTime("Enter a time between 00:00 and 23:59.") from error


def _datetime(text: str) -> str:
    local, zone = local_and_zone(text)
    try:
        found = datetime.fromisoformat(local)
    except ValueError as error:
        raise BadTime("Enter a date and a time, such as 2026-11-30 09:30.") from error
    if "T" not in local or found.tzinfo is not None:
        raise BadTime("Enter a date and a time, such as 2026-11-30 09:30.")
    return found.isoformat() if not zone else _in_zone(found, zone).isoformat()


def _in_zone(local: datetime, zone: str) -> datetime:
    """Return this local time in this zone. Raises BadTime if there is no such zone, or no such time in it."""
    if zone.upper() in ("UTC", "Z"):
        return local.replace(tzinfo=UTC)
    if found := _OFFSET.fullmatch(zone):
        minutes = int(found[2]) * 60 + int(found[3])
        zone = f"{found[1]}{found[2]}:{found[3]}"
        if minutes < 24 * 60:
            return datetime.fromisoformat(f"{local.isoformat()}{zone}")
    try:
        named = local.replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        why = f"There is no time zone {zone[:60]!r}. Write one such as Europe/Berlin, UTC or +01:00."
        raise BadTime(why) from error
    there = named.astimezone(UTC).astimezone(named.tzinfo)
    if there.replace(tzinfo=None) != local:
        raise BadTime(f"There is no such time in {zone}: the clocks go forward then.")
    return datetime.fromisoformat(named.isoformat())


def _duration(text: str) -> str:
    seconds = _seconds(text)
    if seconds is None or seconds > timedelta.max.total_seconds():
        raise BadTime("Enter a duration, such as 90 minutes, 1h 30m or 2 days.")
    return iso_duration(seconds)


def _seconds(text: str) -> int | None:
    """Return how many seconds are typed: in words, as a clock shows them, or as ISO 8601."""
    if (found := _ISO.fullmatch(text)) and any(found.groups()) and not text.endswith("T"):
        return sum(int(part or 0) * SECONDS[unit] for part, unit in zip(found.groups(), "wdhms", strict=True))
    if found := _CLOCK.fullmatch(text):
        return int(found[1]) * 3_600 + int(found[2]) * 60 + int(found[3] or 0)
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        return None
    return sum(int(part[1]) * SECONDS[part[2][0].lower()] for part in parts)


def iso_duration(seconds: int) -> str:
    """Return a duration as ISO 8601, as pydantic writes it."""
    days, rest = divmod(seconds, 86_400)
    hours, minutes, left = rest // 3_600, rest // 60 % 60, rest % 60
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (left, "S")) if number)
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}" if days or clock else "PT0S"


def _duration_text(value: str) -> str:
    """Return a duration in words, such as "1 day 2 hours"."""
    seconds = _seconds(value)
    if seconds is None or iso_duration(seconds) != value:
        raise BadTime("not written as pydantic writes it")
    named = (("day", 86_400, 10**9), ("hour", 3_600, 24), ("minute", 60, 60), ("second", 1, 60))
    found = [(seconds // size % most, word) for word, size, most in named]
    return " ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in found if number) or "0 seconds"


def _datetime_text(value: str) -> str:
    local, zone = local_and_zone(value)
    return f"{local} {zone}".rstrip()


_Words = Callable[[str], str]
_TEXTS: dict[str, _Words] = {"date": str, "time": str, "datetime": _datetime_text, "duration": _duration_text}
_READ: dict[str, _Words] = {"date": _date, "time": _time, "datetime": _datetime, "duration": _duration}
