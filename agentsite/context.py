"""The template context of every page."""

from django.conf import settings
from django.http import HttpRequest

from conversations.accounts.reauthentication import seconds_left
from conversations.database.disk import is_short
from conversations.pages.theme import chosen


def site(request: HttpRequest) -> dict[str, object]:
    """Return `demo` (the demo model answers), `disk_full` (nothing can be stored) and this browser's `theme`.

    `csrf_cookie` is the name of the cookie from which scripts take the CSRF token, `verified` for how many seconds the
    person is not asked for their password again.
    """
    cookie = settings.CSRF_COOKIE_NAME
    return {
        "demo": settings.DEMO,
        "disk_full": is_short(),
        "theme": chosen(request),
        "csrf_cookie": cookie,
        "verified": seconds_left(request),
    }
