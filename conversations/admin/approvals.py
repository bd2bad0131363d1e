"""Approvals in the admin: the list, pending first.

A GET changes nothing: the list's action only leads to the page that shows each selected call in full.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.accounts.names import display_name
from conversations.admin.base import one_piece
from conversations.admin.deciding import DecidingPages, address_of
from conversations.admin.figures import FiguresPage
from conversations.approvals.many import TOGETHER_MOST
from conversations.approvals.permissions import shown_to
from conversations.display.cards import cards
from conversations.display.faithful import first_line, inert, visible
from conversations.display.gate import Card
from conversations.display.rendering.faithful_code import command_lines
from conversations.display.risk import RISKS_TO_FILTER
from conversations.display.when import span
from conversations.models import Approval, GateState


class StateFilter(admin.SimpleListFilter):
    """Filters by the approval's state; pending by default."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states, and "All"."""
        return [*((str(value), str(label)) for value, label in GateState.choices), ("all", "All")]

    def value(self) -> str:
        """Return the chosen state, or pending."""
        return _state(super().value())

    def choices(self, changelist: ChangeList) -> Any:
        """Leave out Django's own "All", which would mean pending here."""
        return list(super().choices(changelist))[1:]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Approval]) -> QuerySet[Approval]:
        """Filter by the state."""
        return queryset if self.value() == "all" else queryset.filter(gate=self.value())


class RiskFilter(admin.SimpleListFilter):
    """Filters by the call's risk."""

    title = "risk"
    parameter_name = "risk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the risks that a tool can declare."""
        return list(RISKS_TO_FILTER.items())

    def value(self) -> str | None:
        """Return the chosen risk; None, for all, if it is not a risk."""
        asked = super().value()
        return asked if asked in dict(self.lookup_choices) else None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Approval]) -> QuerySet[Approval]:
        """Filter by the risk."""
        return queryset.filter(risk=self.value()) if self.value() else queryset


def _state(asked: str | None) -> str:
    """Return the state that an address asks for; pending if it names none."""
    return asked if asked in (*GateState.values, "all") else GateState.PENDING


@admin.register(Approval)
class ApprovalAdmin(DecidingPages, FiguresPage):
    """Approvals: what waits for a person, and what was decided."""

    list_display = ("what", "why", "asks", "whose", "waits", "state")
    list_filter = (StateFilter, RiskFilter)
    list_select_related = ("conversation__owner",)
    list_fullwidth = True
    list_filter_submit = False
    search_fields = ("reason", "tool", "conversation__owner__username")
    search_help_text = "Search reasons, tools and owners"
    actions = ("decide_together",)

    def has_view_permission(self, request: HttpRequest, obj: Approval | None = None) -> bool:
        """All staff may see what waits for them; permission to decide is checked with each decision."""
        return request.user.is_active and request.user.is_staff

    def get_queryset(self, request: HttpRequest) -> QuerySet[Approval]:
        """Return the approvals that this person may see."""
        return shown_to(request.user, super().get_queryset(request))

    def get_urls(self) -> list[URLPattern]:
        """Add the page that shows several approvals."""
        view = self.admin_site.admin_view(self.together_view)
        return [path("together/", view, name="conversations_approval_together"), *super().get_urls()]

    def get_ordering(self, request: HttpRequest) -> Any:
        """Order pending approvals first, the longest wait on top; then the newest."""
        state = _state(request.GET.get("state"))
        if state == GateState.PENDING:
            return ("asked_at", "pk")
        pending_first = Case(When(gate=GateState.PENDING, then=Value(0)), default=Value(1), output_field=IntegerField())
        return (pending_first, "-asked_at", "-pk") if state == "all" else ("-asked_at", "-pk")

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Make the cards of the rows, once for all columns and rows."""
        found = super().get_changelist_instance(request)
        found.result_list = rows = list(found.result_list)
        for row, shown in zip(rows, cards(rows, request.user, decided=True), strict=True):
            row._shown = shown
        return found

    @admin.action(description="Review and decide selected approvals")
    def decide_together(self, request: HttpRequest, queryset: QuerySet[Approval]) -> HttpResponseRedirect:
        """Redirect to the page that shows the selected approvals."""
        keys = list(queryset.values_list("pk", flat=True)[: TOGETHER_MOST + 1])
        if len(keys) > TOGETHER_MOST:
            messages.error(request, f"Select at most {TOGETHER_MOST} approvals: more cannot be read together.")
            return redirect("admin:conversations_approval_changelist")
        return redirect(address_of(keys))

    @admin.display(description="Action")
    def what(self, obj: Approval) -> SafeString:
        """Show what the call does, and its risk."""
        shown = _card(obj)
        badge = format_html(' <span class="badge {}">{}</span>', shown.risk_class, shown.risk) if shown.risk else ""
        return one_piece(format_html("{}{}", visible(shown.title), badge))

    @admin.display(description="Why")
    def why(self, obj: Approval) -> SafeString:
        """Show what the agent says, or the reason for asking, shortened; or which program asks."""
        shown = _card(obj)
        said = shown.asker.words or shown.reason or (f"Asked by {asker}" if (asker := shown.asker.program) else "")
        about = "Before the edit: " if said and shown.proposed else ""
        return one_piece(visible(about + first_line(said, 80)))

    @admin.display(description="Input")
    def asks(self, obj: Approval) -> SafeString:
        """Show the first line of the input."""
        return one_piece(command_lines(first_line(_card(obj).first_line, 60))[0])

    @admin.display(description="Owner")
    def whose(self, obj: Approval) -> str:
        """Show the conversation's owner."""
        return inert(display_name(obj.conversation.owner))

    @admin.display(description="Waiting")
    def waits(self, obj: Approval) -> str:
        """Show how long it has waited, or waited until it was decided."""
        if obj.asked_at is None:
            return "-"
        return span(((obj.decided_at or timezone.now()) - obj.asked_at).total_seconds())

    @admin.display(description="State")
    def state(self, obj: Approval) -> SafeString:
        """Show its state."""
        kind = {GateState.PENDING: "wait", GateState.APPROVED: "ok", GateState.REJECTED: "bad"}.get(
            GateState(obj.gate), ""
        )
        return format_html('<span class="badge {}">{}</span>', kind, obj.get_gate_display())


def _card(obj: Approval) -> Card:
    """Return the card of a row of the list, which the list has made."""
    shown: Card = obj._shown  # type: ignore[attr-defined]
    return shown
