"""Completing the fields of the admin's forms, for plugins whose forms have `autocomplete_fields`."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, ManyToManyField
from django.http import HttpRequest


class Completing(AutocompleteJsonView):
    """Django's view, which takes the name of any field from the address and fails for those that no form has."""

    def process_request(self, request: HttpRequest) -> tuple[str, Any, Any, str]:
        """Read what is asked for. Raises PermissionDenied for what no form could ask for, and Http404."""
        term, pages, field, to_field = super().process_request(request)
        if "\x00" in term or not isinstance(field, ForeignKey | ManyToManyField):
            raise PermissionDenied
        return term, pages, field, to_field


def complete(request: HttpRequest) -> Any:
    """Answer what a form asks for."""
    return Completing.as_view(admin_site=admin.site)(request)
