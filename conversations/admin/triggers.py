"""Triggers in the admin: what starts by itself for whom, what became of it, and pausing, resuming or deleting one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.defaultfilters import date, pluralize
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import local
from conversations.admin.base import Gone, ReadOnly, going, link_to, one_piece, whole_column
from conversations.display.faithful import first_line, visible
from conversations.models import Delivery, Firing, FiringState, Trigger
from conversations.models.trigger import STATES
from conversations.prompts import startable
from conversations.triggers import managing

SHOWN_MOST = 100
"""Firings on the page of a trigger, the newest."""
STATE_WORDS = {"on": "On", "paused": "Paused", "off": "Switched off", "over": "Over"}


class StateFilter(admin.SimpleListFilter):
    """Triggers by their state."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states."""
        return [(state, STATE_WORDS[state]) for state in STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the triggers in the chosen one."""
        chosen = self.value() or ""
        if chosen not in STATES:
            return queryset
        return queryset.filter(pk__in=Trigger.objects.in_state(chosen))


@admin.register(Trigger)
class TriggerAdmin(ReadOnly):
    """The list of everybody's triggers, and a page of each with its history."""

    list_display = ("named", "owner", "what", "when", "due_next", "in_state", "last_firing")
    list_display_links = ("named",)
    list_filter = (StateFilter,)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username", "policy")
    fields = (
        "named", "owner", "what", "whole_text", "input", "when", "due_next", "in_state", "off_reason", "failures",
        "tier", "overlap", "proof", "mapping", "its_conversation", "created_at", "paused_at", "history",
    )  # fmt: skip
    actions = ("pause", "resume")
    view_on_site = False  # its page is its owner's alone

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add what became of the last time of each."""
        last = Firing.objects.filter(trigger=OuterRef("pk")).order_by("-pk")
        found: QuerySet[Any] = super().get_queryset(request)
        newest = {"last_state": Subquery(last.values("state")[:1]), "last_at": Subquery(last.values("fired_at")[:1])}
        annotated: QuerySet[Any] = found.annotate(**newest)
        return annotated

    @admin.display(description="Name", ordering="name")
    def named(self, obj: Trigger) -> SafeString:
        """Show its name."""
        return one_piece(visible(obj.name))

    @admin.display(description="Starts")
    def what(self, obj: Trigger) -> SafeString:
        """Show what it starts: the agent with the beginning of the text, or a workflow."""
        of_agent = obj.policy == AGENT
        return one_piece(
            visible(f"The agent: {first_line(obj.text, 60)}" if of_agent else startable.title_of(obj.policy))
        )

    @admin.display(description="When")
    def when(self, obj: Trigger) -> str:
        """Show its schedule in words."""
        return obj.when[:1].upper() + obj.when[1:] if obj.hook else obj.when

    @admin.display(description="Next", ordering="next_at")
    def due_next(self, obj: Trigger) -> str:
        """Show when it fires next, in its own zone, in which its schedule is read."""
        return local(obj.next_at, obj.zone) if obj.next_at and obj.state == "on" else "-"

    @admin.display(description="State")
    def in_state(self, obj: Trigger) -> str:
        """Show its state."""
        return STATE_WORDS[obj.state]

    @admin.display(description="Last firing")
    def last_firing(self, obj: Any) -> str:
        """Show what became of it the last time, and when that was."""
        return f"{FiringState(obj.last_state).label}, {_time(obj.last_at)}" if obj.last_state else "-"

    whole_text = whole_column("text", "Text")

    @admin.display(description="Conversation")
    def its_conversation(self, obj: Trigger) -> SafeString | str:
        """Show a link to where its turns stand."""
        return link_to(obj.conversation) if obj.conversation else "-"

    @admin.display(description="History")
    def history(self, obj: Trigger) -> SafeString | str:
        """Show what became of each time that it was due, the newest first."""
        count, found = obj.firings.count(), obj.firings.select_related("prompt")[:SHOWN_MOST]
        if not count:
            return "It has not fired yet."
        rows = format_html_join(
            "",
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (
                    _due(firing, obj),
                    f"{firing.get_state_display()}, {firing.times} times"
                    if firing.times > 1
                    else firing.get_state_display(),
                    visible(firing.reason or "-"),
                    link_to(firing.prompt, f"Prompt {firing.prompt_id}") if firing.prompt else "-",
                )
                for firing in found
            ),
        )
        more = f"The last {SHOWN_MOST} of {count}." if count > SHOWN_MOST else ""
        head = "<tr><th>Due</th><th>Result</th><th>Reason</th><th>Turn</th></tr>"
        return format_html(f'<table class="figures"><thead>{head}</thead><tbody>{{}}</tbody></table>{{}}', rows, more)

    @admin.action(description="Pause the selected triggers", permissions=["manage"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Trigger]) -> None:
        """Pause triggers: until somebody resumes them, they fire only if their owner runs them."""
        self._done(request, "Paused", queryset, managing.pause)

    @admin.action(description="Resume the selected triggers", permissions=["manage"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Trigger]) -> None:
        """Let triggers fire again that were paused or switched off."""
        self._done(request, "Resumed", queryset, managing.resume)

    def _done(self, request: HttpRequest, did: str, queryset: QuerySet[Trigger], do: Any) -> None:
        chosen = list(queryset)
        for trigger in chosen:
            do(trigger)
        messages.success(request, f"{did} {len(chosen)} trigger{pluralize(len(chosen))}.")

    def get_deleted_objects(self, objs: Iterable[Trigger], request: HttpRequest) -> Gone:
        """Return what the question says before triggers are deleted: their history goes along."""
        chosen = list(objs)
        told = Delivery.objects.filter(trigger__in=chosen).count()
        return going(chosen, firings=Firing.objects.filter(trigger__in=chosen).count(), deliveries=told)

    def delete_model(self, request: HttpRequest, obj: Trigger) -> None:
        """Delete one, which may be firing at this moment."""
        managing.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Trigger]) -> None:
        """Delete those that were selected, likewise."""
        for trigger in queryset:
            managing.delete(trigger)

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether the person may pause and resume the triggers of others."""
        return request.user.has_perm("conversations.change_trigger")

    def has_delete_permission(self, request: HttpRequest, obj: Trigger | None = None) -> bool:
        """Whether the person may delete the triggers of others."""
        return super(ReadOnly, self).has_delete_permission(request, obj)


def _due(firing: Firing, trigger: Trigger) -> str:
    """Return when a firing was due, came, or was run by hand."""
    if firing.slot:
        return local(firing.slot, trigger.zone)
    return local(firing.fired_at, trigger.zone) if trigger.hook else f"By hand, {_time(firing.fired_at)}"


def _time(moment: Any) -> str:
    """Return a moment in the zone of the person who looks."""
    return date(timezone.localtime(moment), "DATETIME_FORMAT")
