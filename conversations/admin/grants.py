"""Grants in the admin: what people allowed to run without being asked, and revoking it for them."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.urls import URLPattern
from django.utils import timezone
from django.utils.safestring import SafeString

from conversations.accounts.names import display_name
from conversations.admin.base import ReadOnly, one_piece
from conversations.display.faithful import in_line
from conversations.display.grant_words import grant_words
from conversations.models import Grant


@admin.register(Grant)
class GrantAdmin(ReadOnly):
    """The list of grants, which can be revoked."""

    list_display = ("words", "user", "given_at", "used", "used_at", "revoked_at")
    list_display_links = None
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("tool", "user__username")
    actions = ("revoke",)

    @admin.display(description="What it allows")
    def words(self, obj: Grant) -> SafeString:
        """Show it in sentences."""
        said = grant_words(obj.said, display_name(obj.user), "one conversation")
        return one_piece(in_line(" ".join(said)))

    @admin.action(description="Revoke the selected grants", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Grant]) -> None:
        """Revoke grants: from the next call on, their people are asked again."""
        revoked = queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
        messages.success(request, f"Revoked {revoked} grant{pluralize(revoked)}.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether the person may revoke what others granted."""
        return request.user.has_perm("conversations.change_grant")

    def get_urls(self) -> list[URLPattern]:
        """Keep the list: a grant has no page."""
        return [url for url in super().get_urls() if str(url.name).endswith("_changelist")]
