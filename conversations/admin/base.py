"""Base classes and helpers of the admin's pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.database.ids import row_id
from conversations.display.faithful import inert, visible

if TYPE_CHECKING:  # unfold ships no types, and Django's classes take parameters only from its stubs
    Pages = admin.ModelAdmin[Any]
else:
    from unfold.admin import ModelAdmin as Pages

COUNT_MOST = 10_000
Gone = tuple[list[str], dict[str, int], set[str], list[str]]
"""What `get_deleted_objects` of Django's admin returns."""


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # only its stubs take a parameter
    """A paginator that counts at most COUNT_MOST rows: counting all steps takes longer than showing fifty."""

    @cached_property
    def count(self) -> int:
        """The number of rows, at most COUNT_MOST."""
        found: Any = self.object_list
        return int(found[:COUNT_MOST].count())


class ListPages(Pages):
    """A list page, newest first, that survives nonsense in its address and forms."""

    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list. Raises IncorrectLookupParameters for values that fit into no column."""
        if any("\x00" in text for texts in request.GET.lists() for text in texts[1]):
            raise IncorrectLookupParameters("NUL")
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:
            raise IncorrectLookupParameters(error) from error

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Run an action on the selected rows. Raises BadRequest for a selection that is not a row id."""
        marked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if any(row_id(text) is None for text in marked):
            raise BadRequest("a selected row does not exist")
        return super().response_action(request, queryset, *more, **named)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **more: Any
    ) -> HttpResponse:
        """Render with a title in which no character changes the direction of text."""
        context["subtitle"] = inert(str(context.get("subtitle") or ""))
        return super().render_change_form(request, context, *args, **more)

    def page(self, request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
        """Return a page of our own, with what every page of the admin has."""
        known = {**self.admin_site.each_context(request), "opts": self.opts}
        return TemplateResponse(request, f"admin/conversations/{template}.html", {**known, **context}, status=status)


class ReadOnly(ListPages):
    """Pages of a table that nobody can change here, not even administrators."""

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    actions: Any = None

    def _refuse(self, request: HttpRequest, *args: Any, **named: Any) -> bool:
        """Return False: nobody adds, changes or deletes."""
        return False

    has_add_permission = has_change_permission = has_delete_permission = _refuse

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the admin's index lists the table: for whoever may see it, whatever else they may."""
        return self.has_view_permission(request)

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list without counting all rows: the full count is the filtered count."""
        found = super().get_changelist_instance(request)
        found.full_result_count = found.result_count
        return found


def going(chosen: Sequence[Model], **along: int) -> Gone:
    """Return what the question says before these rows are deleted: their names, and how many others go `along`.

    Django lists each of the others, and asks whether the person may delete it: nobody may delete from a log alone.
    """
    rows = {str(row._meta.verbose_name_plural): len(chosen) for row in chosen}
    others = {name: count for name, count in along.items() if count}
    return [visible(str(row)) for row in chosen], {**rows, **others}, set(), []


def person(request: HttpRequest) -> User:
    """Return the user: everybody in the admin is signed in."""
    return cast("User", request.user)


def link_to(obj: Model, words: str = "") -> SafeString:
    """Return a link to the admin's page of a row."""
    name = f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change"
    return format_html('<a class="link" href="{}">{}</a>', reverse(name, args=[obj.pk]), visible(words or str(obj)))


def list_column(model: type[Model], title: str, *, of: str) -> Callable[[Any, Model], SafeString]:
    """Return a column with a link to the list of a model: the rows whose field `of` is this row."""

    @admin.display(description=title)
    def column(_pages: object, obj: Model) -> SafeString:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        return format_html('<a class="link" href="{}?{}__id__exact={}">{}</a>', reverse(name), of, obj.pk, title)

    return column


def one_piece(html: SafeString) -> SafeString:
    """Wrap the content of a cell: on a phone each element in a cell is laid out separately."""
    return format_html("<span>{}</span>", html)


def whole_column(field: str, title: str) -> Callable[[Any, Model], SafeString]:
    """Return a column with a text in full, in a monospaced font, with invisible characters marked."""

    @admin.display(description=title)
    def column(_pages: object, obj: Model) -> SafeString:
        text = getattr(obj, field)
        return format_html('<pre class="whole">{}</pre>', visible(text)) if text else format_html("{}", "-")

    return column
