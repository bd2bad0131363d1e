"""API keys: listing and revoking them. Their owners create them, or `manage.py api_key`."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from conversations.admin.base import ReadOnly, one_piece
from conversations.display.faithful import visible
from conversations.display.keys import limits_in_words
from conversations.models import ApiKey, Scope

MODELS_IN_LINE = 3
"""How many models of a key are shown; more are behind their number."""


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly):
    """The list of API keys, which can be revoked."""

    list_display = ("named", "user", "may", "models", "created", "used_at", "expiry", "revoke")
    list_display_links = None
    list_select_related = ("user",)
    search_fields = ("name", "user__username")

    def get_urls(self) -> list[URLPattern]:
        """Keep the list, and the page that confirms a revocation."""
        return [url for url in super().get_urls() if str(url.name).endswith(("_changelist", "_delete"))]

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Whether the person may revoke a key, which deletes it."""
        return super(ReadOnly, self).has_delete_permission(request, obj)

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """Render the confirmation without an `object`, to whose page it would link: keys have no page."""
        return super().render_delete_form(request, {**context, "object": None, "key": context["object"]})

    @admin.display(description="Name", ordering="name")
    def named(self, obj: ApiKey) -> SafeString:
        """Show its name."""
        return one_piece(visible(obj.name))

    @admin.display(description="Scopes")
    def may(self, obj: ApiKey) -> str:
        """Show its scopes."""
        return ", ".join(obj.scopes)

    @admin.display(description="Models and limits")
    def models(self, obj: ApiKey) -> SafeString:
        """Show the models that it may use under /v1, and its own limits there."""
        if Scope.PASSTHROUGH not in obj.scopes:
            return format_html("{}", "-")
        limits = limits_in_words(obj)
        named = format_html_join("", "<li>{}</li>", ((visible(name),) for name in obj.only_models))
        if len(obj.only_models) > MODELS_IN_LINE:
            opens = "<details><summary>{} models</summary><ul>{}</ul></details>{}"
            return one_piece(format_html(opens, len(obj.only_models), named, limits))
        return one_piece(format_html("<ul>{}</ul>{}", named or format_html("<li>{}</li>", "all models"), limits))

    @admin.display(description="")
    def revoke(self, obj: ApiKey) -> SafeString:
        """Show a link to the page that revokes it."""
        address = reverse("admin:conversations_apikey_delete", args=[obj.pk])
        return format_html('<a class="link" href="{}">Revoke</a>', address)
