"""A full disk: told from other errors, shown to people, and waited out by workers.

Who finds it full touches a file beside the database, which every process of the host looks at: a page cannot ask the
database whether it can be written. The file counts for as long as it is fresh, so nobody has to take it away.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

logger = logging.getLogger(__name__)
T = TypeVar("T")

FRESH_SECONDS = 30.0
"""How long one failed write counts."""
FIRST_RETRY_SECONDS = 1.0
"""Before the first new try of a record; each further one waits twice as long, up to LONGEST_RETRY_SECONDS."""
LONGEST_RETRY_SECONDS = 5.0
LEAST_BYTES = 16 * 1024 * 1024
"""With less than this free, the disk is as good as full."""


class DiskFull(Exception):
    """The site's disk is full: nothing was stored, so it can be sent again. Tell whoever runs the site."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = ("database or disk is full", "disk i/o error")
"""Of SQLite, which says the second where a file may grow no more. PostgreSQL has a number, 53100."""
_known = threading.Event()


def is_full(error: BaseException | None) -> bool:
    """Whether this error says that there is no space left, or one that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _NUMBERS:
            return True
        if getattr(error, "sqlstate", "") == "53100":
            return True
        if isinstance(error, Error) and any(words in str(error).lower() for words in _WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def report_if_full(error: BaseException) -> bool:
    """`is_full`; where it is, pages tell of it from now on, and it is logged: once, until there is space again."""
    if not is_full(error):
        return False
    if not _known.is_set():
        _known.set()
        logger.error("the disk is full: nothing can be recorded; going on when there is space", exc_info=error)
    with suppress(OSError):  # then the free space tells
        _flag().touch()
    return True


def report_space() -> None:
    """Something was written: there is space again."""
    if _known.is_set():
        _known.clear()
        logger.warning("there is space on the disk again")
        with suppress(OSError):
            _flag().unlink(missing_ok=True)


def is_short() -> bool:
    """Whether a process of this host found the disk full lately, or next to nothing of it is free."""
    with suppress(OSError):
        if time.time() - _flag().stat().st_mtime < FRESH_SECONDS:
            return True
    try:
        return shutil.disk_usage(settings.AGENTSITE_DATA).free < LEAST_BYTES
    except OSError:
        return False


@contextmanager
def reporting_full() -> Iterator[None]:
    """Raise DiskFull where that is why something could not be stored."""
    try:
        yield
    except Exception as error:
        if report_if_full(error):
            raise DiskFull from error
        raise
    else:
        report_space()


async def retry_while_full(
    write: Callable[..., Awaitable[T]], function: Callable[..., T], *args: object, waited: Callable[[float], object]
) -> T:
    """What `write` does with the function, tried again and again while the disk is full: what is known is not lost.

    `waited` is told of the seconds before each new try.
    """
    wait = FIRST_RETRY_SECONDS
    while True:
        try:
            done = await write(function, *args)
        except Exception as error:
            if not report_if_full(error):
                raise
        else:
            report_space()
            return done
        since = time.monotonic()
        await asyncio.sleep(wait)
        waited(time.monotonic() - since)
        wait = min(wait * 2, LONGEST_RETRY_SECONDS)


class DiskFullMiddleware:
    """Middleware: a request that fails because the disk is full is answered 507, with a sentence that says so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The response."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """What is said in the place of a fault; None for any other."""
        if not report_if_full(exception):
            return None
        if request.path.startswith("/api/"):
            return JsonResponse({"error": {"code": "disk_full", "message": str(DiskFull())}}, status=507)
        return render(request, "507.html", {"why": DiskFull()}, status=507)


def _flag() -> Path:
    return Path(settings.AGENTSITE_DATA) / "disk-full"
