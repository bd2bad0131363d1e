"""The admin as a whole: who comes in, and where people sign in."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

if TYPE_CHECKING:  # unfold ships no types
    Base = AdminSite
else:
    from unfold.sites import UnfoldAdminSite as Base

View = TypeVar("View", bound=Callable[..., Any])


class Site(Base):
    """The admin: staff come in, members are told that it is not for them, and strangers sign in on the site's own page.

    Django's own would show members a second form to sign in, which asks for another account.
    """

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Return the view with a check who asks for it. Strangers are redirected to `login`, members get 403."""
        checked = super().admin_view(view, cacheable)

        def inner(request: HttpRequest, *args: Any, **named: Any) -> Any:
            if request.user.is_authenticated and not self.has_permission(request):
                return _not_for_members(request)
            return checked(request, *args, **named)

        return cast(View, update_wrapper(inner, checked))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Lead to the sign-in page of the site, and from there to `next`. No password is looked at here."""
        then = request.GET.get(REDIRECT_FIELD_NAME, "")
        safe = then.startswith("/") and url_has_allowed_host_and_scheme(then, {request.get_host()}, request.is_secure())
        if not safe:
            then = reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(then)
        if request.user.is_authenticated:
            return _not_for_members(request)
        return redirect_to_login(then, reverse("login"))


def _not_for_members(request: HttpRequest) -> HttpResponse:
    return render(request, "403_admin.html", status=HTTPStatus.FORBIDDEN)
