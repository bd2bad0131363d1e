"""Decorators of views: who may send what, and where somebody who is not signed in goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

View = Callable[..., HttpResponseBase]


def page_view(view: View) -> View:
    """Decorator for a view that only shows something, to a user who is signed in."""
    return login_required(require_safe(view))


def form_view(view: View) -> View:
    """Decorator for a view that accepts only POST, from a user who is signed in.

    Somebody whose session has expired is sent to sign in, and then back to the page of the form: this view has no GET.
    """

    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return redirect_to_login(referring_page(request))

    return guarded


def referring_page(request: HttpRequest) -> str:
    """Return the path of the page that sent the form, from its Referer; "/" if that is missing or another site."""
    page = urlsplit(request.headers.get("Referer", ""))
    ours = page.netloc == request.get_host() and url_has_allowed_host_and_scheme(page.path, allowed_hosts=None)
    return page.path if ours else "/"
