"""Full disks: telling them from other errors, and showing them to people.

A process that finds the disk full touches a flag file beside the database, which every process of the host checks: a
page cannot ask the database whether it is writable. The flag only counts while it is fresh, so nobody must remove it.
"""

from __future__ import annotations

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

logger = logging.getLogger(__name__)

FRESH_SECONDS = 30.0
"""How long one failed write counts: the age up to which the flag file is trusted."""
LEAST_BYTES = 16 * 1024 * 1024
"""With less free space than this, the disk counts as full."""


class DiskFull(Exception):
    """The site's disk is full, so nothing was stored. Tell whoever runs the site, and send it again later."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = ("database or disk is full", "disk i/o error")
"""Messages of SQLite; it gives the second when a file may not grow any further. PostgreSQL has a code, 53100."""
_known = threading.Event()


def is_full(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, says that there is no space left."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _NUMBERS:
            return True
        if getattr(cause, "sqlstate", "") == "53100":
            return True
        if isinstance(cause, Error) and any(words in str(cause).lower() for words in _WORDS):
            return True
    return False


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Iterate over an error and those that led to it, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def report_if_full(error: BaseException) -> bool:
    """Return `is_full(error)`. If so, pages show it from now on, and it is logged once until there is space again."""
    if not is_full(error):
        return False
    if not _known.is_set():
        _known.set()
        logger.error("the disk is full: nothing can be recorded until there is space again", exc_info=error)
    with suppress(OSError):  # then the free space shows it
        _flag().touch()
    return True


def report_space() -> None:
    """Report that a write succeeded, so there is space again."""
    if _known.is_set():
        _known.clear()
        logger.warning("there is space on the disk again")
        with suppress(OSError):
            _flag().unlink(missing_ok=True)


def is_short() -> bool:
    """Whether a process of this host recently found the disk full, or less than LEAST_BYTES are free."""
    with suppress(OSError):
        if time.time() - _flag().stat().st_mtime < FRESH_SECONDS:
            return True
    try:
        return shutil.disk_usage(settings.AGENTSITE_DATA).free < LEAST_BYTES
    except OSError:
        return False


@contextmanager
def reporting_full() -> Iterator[None]:
    """Turn errors caused by a full disk into DiskFull, and report whether there is space."""
    try:
        yield
    except Exception as error:
        if report_if_full(error):
            raise DiskFull from error
        raise
    else:
        report_space()


class DiskFullMiddleware:
    """Middleware that answers 507, with an explanation, when a request fails because the disk is full."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the view's response."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the 507 response for a full disk; None for any other error."""
        if not report_if_full(exception):
            return None
        if request.path.startswith(("/api/", "/hooks/")):
            return JsonResponse({"error": {"code": "disk_full", "message": str(DiskFull())}}, status=507)
        return render(request, "507.html", {"why": DiskFull()}, status=507)


def _flag() -> Path:
    return Path(settings.AGENTSITE_DATA) / "disk-full"
