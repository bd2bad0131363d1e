"""Views that forms post to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

View = Callable[..., HttpResponse]


def posted(view: View) -> View:
    """A view for people who are signed in, by POST alone.

    Somebody whose session has ended signs in and comes back to the page of the form: here a GET finds nothing.
    """

    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return redirect_to_login(page_of(request))

    return guarded


def page_of(request: HttpRequest) -> str:
    """The page that the form stands on, as the browser tells; the first one where it does not, or tells of another."""
    page = urlsplit(request.headers.get("Referer", ""))
    ours = page.netloc == request.get_host() and url_has_allowed_host_and_scheme(page.path, allowed_hosts=None)
    return page.path if ours else "/"
