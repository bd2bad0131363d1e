"""The theme: light, dark, or as the system prefers. A cookie, so that a page has the right colours at once."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from conversations.pages.decorators import referring_page

COOKIE = "theme"
THEMES = ("light", "dark")
YEAR_SECONDS = 365 * 86_400


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Set one of THEMES for this browser, or "" for the system's preference, and return to the page of the form.

    No sign-in is needed. 400 for a theme that does not exist.
    """
    theme = request.POST.get("theme", "")
    if theme not in ("", *THEMES):
        return HttpResponseBadRequest("There is no such theme.", content_type="text/plain")
    response = redirect(referring_page(request))
    if not theme:
        response.delete_cookie(COOKIE, samesite="Lax")
    else:
        response.set_cookie(COOKIE, theme, YEAR_SECONDS, secure=settings.HTTPS, httponly=True, samesite="Lax")
    return response


def chosen(request: HttpRequest) -> str:
    """Return the theme chosen in this browser; "" if none was, or if it does not exist."""
    theme = request.COOKIES.get(COOKIE, "")
    return theme if theme in THEMES else ""
