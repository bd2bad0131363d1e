"""What the admin's pages have in common."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.database.ids import row_id
from conversations.display.faithful import inert, visible

if TYPE_CHECKING:  # unfold ships no types, and Django's classes take parameters only from its stubs
    from django.contrib import admin

    Pages = admin.ModelAdmin[Any]
    Numbered = Paginator[Any]
else:
    from unfold.admin import ModelAdmin as Pages

    Numbered = Paginator

COUNT_MOST = 10_000


class CappedPaginator(Numbered):
    """Counts no further than people turn pages: to count all steps of a site takes longer than to show fifty."""

    @cached_property
    def count(self) -> int:
        """How many there are, or COUNT_MOST."""
        found: Any = self.object_list
        return int(found[:COUNT_MOST].count())


class ListPages(Pages):
    """A table whose addresses and forms may name any rows."""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list; where a number or a text of its address fits into no column, as with any other nonsense there."""
        if any("\x00" in text for texts in request.GET.lists() for text in texts[1]):
            raise IncorrectLookupParameters("NUL")
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:
            raise IncorrectLookupParameters(error) from error

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """What an action does with the rows that were marked. Raises BadRequest for what names no row."""
        marked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if any(row_id(text) is None for text in marked):
            raise BadRequest("what was marked is no row")
        return super().response_action(request, queryset, *more, **named)


class ReadOnly(ListPages):
    """What nobody changes here, administrators included: it says what happened."""

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    actions: Any = None

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **more: Any
    ) -> HttpResponse:
        """With a title in which nothing is turned round."""
        context["subtitle"] = inert(str(context.get("subtitle") or ""))
        return super().render_change_form(request, context, *args, **more)

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Without counting all rows: they are said to be as many as were found."""
        found = super().get_changelist_instance(request)
        found.full_result_count = found.result_count
        return found


def link_to(obj: Model, words: str = "") -> SafeString:
    """A link to the admin's page of a row."""
    name = f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change"
    return format_html('<a class="link" href="{}">{}</a>', reverse(name, args=[obj.pk]), visible(words or str(obj)))


def link_to_list(model: type[Model], words: str, **where: int) -> SafeString:
    """A link to the admin's list of a model, of the rows where a field has this value."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    query = "&".join(f"{field}={value}" for field, value in where.items())
    return format_html('<a class="link" href="{}?{}">{}</a>', reverse(name), query, words)


def one_piece(html: SafeString) -> SafeString:
    """For a cell: on a phone each thing in a cell is laid out by itself."""
    return format_html("<span>{}</span>", html)


def whole(text: str) -> SafeString:
    """A text in full, in the letters of a machine; what cannot be seen is marked."""
    return format_html('<pre class="whole">{}</pre>', visible(text)) if text else format_html("{}", "-")
