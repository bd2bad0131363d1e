"""API keys: listing and revoking them. Their owners create them, or `manage.py api_key`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.accounts.keys import by_public_id, public_id
from conversations.admin.base import ReadOnly, person
from conversations.display.faithful import visible
from conversations.models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly):
    """The list of API keys, which can be revoked. Pages name a key by its public id, not its hash."""

    list_display = ("named", "user", "may", "created", "used_at", "expiry", "revoke")
    list_display_links = None
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    ordering = ("-created",)

    def get_urls(self) -> list[URLPattern]:
        """Keep the list, and the page that confirms a revocation."""
        return [url for url in super().get_urls() if str(url.name).endswith(("_changelist", "_delete"))]

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Whether the person may revoke a key, which deletes it."""
        return super(ReadOnly, self).has_delete_permission(request, obj)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> ApiKey | None:
        """Return the key with this public id."""
        return by_public_id(self.get_queryset(request), object_id)

    def get_deleted_objects(
        self, objs: Iterable[ApiKey], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return what is deleted with the keys: nothing else."""
        keys = list(objs)
        return [str(key) for key in keys], {"API keys": len(keys)}, set(), []

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """Render the confirmation without an `object`, to whose page it would link: keys have no page."""
        return super().render_delete_form(request, {**context, "object": None, "key": context["object"]})

    def log_deletions(self, request: HttpRequest, queryset: Iterable[ApiKey]) -> list[LogEntry]:
        """Log who revoked the keys, by their public ids."""
        kind = ContentType.objects.get_for_model(ApiKey)
        return [
            LogEntry.objects.create(
                user=person(request),
                content_type=kind,
                object_id=public_id(key),
                object_repr=str(key),
                action_flag=DELETION,
            )
            for key in queryset
        ]

    @admin.display(description="Name", ordering="name")
    def named(self, obj: ApiKey) -> SafeString:
        """Show its name."""
        return visible(obj.name)

    @admin.display(description="Scopes")
    def may(self, obj: ApiKey) -> str:
        """Show its scopes."""
        return ", ".join(obj.scopes)

    @admin.display(description="")
    def revoke(self, obj: ApiKey) -> SafeString:
        """Show a link to the page that revokes it."""
        address = reverse("admin:conversations_apikey_delete", args=[public_id(obj)])
        return format_html('<a class="link" href="{}">Revoke</a>', address)
