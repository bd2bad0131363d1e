"""Pages of another person: somebody else has signed in since, in the same browser, and the page does not know.

The site's pages name whose they are with everything they send. What the page of one person sends is never done as
another, for whom the browser has a session by now.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from conversations.accounts.names import display_name

HEADER, FIELD = "X-Person", "page_of"
"""What the id of the page's user is sent as: by scripts, and by forms that the browser sends itself."""


class AnotherPersonMiddleware:
    """Middleware that refuses, with 409, what was sent by a page of somebody who is not signed in any more."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the view's response."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        """Return the refusal; None if the page is the user's own, or does not say whose it is.

        To a script the refusal is one sentence, with whose session it is in the header; to a browser it is a page.
        """
        in_header = request.headers.get(HEADER, "")
        given = in_header or ("" if getattr(view, "csrf_exempt", False) else request.POST.get(FIELD, ""))
        if not given or not request.user.is_authenticated or given == str(request.user.pk):
            return None
        name = display_name(request.user)
        if not in_header:
            return render(request, "409_person.html", {"name": name}, status=HTTPStatus.CONFLICT)
        words = (
            f"You are signed in as {name} in this browser now, and this page belongs to somebody else."
            f" Reload it to continue as {name}. What you typed stays here until then."
        )
        plain = HttpResponse(words, status=HTTPStatus.CONFLICT, content_type="text/plain; charset=utf-8")
        plain.headers[HEADER] = str(request.user.pk)
        return plain
