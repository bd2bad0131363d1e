"""The request type of views behind `login_required`."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class PersonRequest(HttpRequest):
    """A request by a signed-in user."""

    user: User
    htmx: HtmxDetails
