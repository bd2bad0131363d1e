"""CSP: what a browser may do with a page of ours, which is nothing that a model could have written into it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PAGES = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
# The admin's own scripts stand partly in the page and are evaluated (Alpine); nothing comes from elsewhere.
ADMIN = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


class CspMiddleware:
    """Middleware that gives every response its Content-Security-Policy, where the view did not give one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The response, with its CSP."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", ADMIN if request.path.startswith("/admin/") else PAGES)
        return response
