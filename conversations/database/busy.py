"""A busy database: somebody else holds a lock for longer than a request waits for it, e.g. a backup of the file.

Nothing was stored then. People get 503, and what they wrote back in its field or in a form that sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from agents.passthrough.errors import error_body
from conversations.database.disk import causes
from conversations.database.plans import repeated_cursor

RETRY_SECONDS = 10
"""When to try again."""
LOCK_SECONDS = 0.5
"""How long a worker waits on PostgreSQL for somebody else's lock: the other turns of its drain wait with it."""
SHORT = 40
"""Characters of a value without spaces that a form carries along unseen: an id, not something written."""
_WORDS = ("database is locked", "database table is locked")
"""Messages of SQLite."""
_LOCKED = "55P03"
"""PostgreSQL's code for a lock that was not given in time."""


class DatabaseBusy(Exception):
    """The site's database is busy with something else, so nothing was stored. Send it again in a moment."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def is_busy(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, says that a lock was not given in time."""
    return is_locked(error) or any(
        isinstance(cause, OperationalError) and any(words in str(cause).lower() for words in _WORDS)
        for cause in causes(error)
    )


def is_locked(error: BaseException | None) -> bool:
    """The same, but only if it was the lock of some rows, on PostgreSQL: others can be written meanwhile."""
    return any(getattr(cause, "sqlstate", "") == _LOCKED for cause in causes(error))


@contextmanager
def brief_waits(seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Open a transaction that waits for each lock for so long at most; on SQLite, which has one lock, as ever."""
    with transaction.atomic():
        limit_waits(seconds)
        yield


def limit_waits(seconds: float = LOCK_SECONDS) -> None:
    """Let the open transaction wait for each lock for so long at most; on SQLite, which has one lock, as ever."""
    if connection.vendor == "postgresql":
        with repeated_cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{seconds * 1000:.0f}ms"])


@contextmanager
def reporting_busy() -> Iterator[None]:
    """Turn errors caused by a busy database into DatabaseBusy."""
    try:
        yield
    except OperationalError as error:
        if is_busy(error):
            raise DatabaseBusy from error
        raise


def busy_response(request: HttpRequest) -> HttpResponse:
    """Return the 503 that says so. Whatever a form sent is in a form again, unless there is a password in it."""
    if request.path.startswith(("/api/", "/hooks/")):
        error = {"code": "busy", "message": str(DatabaseBusy()), "retry_after": RETRY_SECONDS}
        answer: HttpResponse = JsonResponse({"error": error}, status=503)
    elif request.path.startswith("/context/"):
        body = error_body(503, "busy", str(DatabaseBusy()))
        answer = HttpResponse(body, content_type="application/json", status=503)
    else:
        answer = render(request, "503.html", {"why": DatabaseBusy(), "kept": _kept(request)}, status=503)
    answer.headers["Retry-After"] = str(RETRY_SECONDS)
    return answer


def _kept(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Return name and value of each field that was sent, and whether a person may have written it."""
    fields = [(name, value) for name, values in request.POST.lists() for value in values]
    if any("password" in name for name, _ in fields):
        return []
    return [
        (name, value, len(value) > SHORT or any(each.isspace() for each in value))
        for name, value in fields
        if name != "csrfmiddlewaretoken"
    ]


class BusyMiddleware:
    """Middleware that answers 503, with an explanation, when a request fails because the database is busy."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the view's response. Each 503 says when to try again."""
        response = self.get_response(request)
        if response.status_code == 503:
            response.headers.setdefault("Retry-After", str(RETRY_SECONDS))
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the 503 response for a busy database; None for any other error."""
        return busy_response(request) if is_busy(exception) else None
