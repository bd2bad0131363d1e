"""The Content-Security-Policy: pages run no script, style or form that a model could have written into them."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PAGES = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
FRAMING = f"{PAGES}; frame-src 'self'"
"""Of pages that show files in frames. What a frame loads is from this site, and may do even less."""
# The admin has inline scripts and evaluates expressions (Alpine). Nothing is loaded from another origin.
ADMIN = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


def allow_own_frames(response: HttpResponse) -> HttpResponse:
    """Let a page show frames of this site. Returns the response."""
    response["Content-Security-Policy"] = FRAMING
    return response


class CspMiddleware:
    """Middleware that sets the Content-Security-Policy of every response whose view did not set one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response with its Content-Security-Policy."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", ADMIN if request.path.startswith("/admin/") else PAGES)
        return response
