"""The record, read-only: nobody adds, changes or deletes anything here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.engine.root import AGENT
from conversations.admin.base import ReadOnly, link_to, list_column, person, whole_column
from conversations.admin.confirm import Question, confirm
from conversations.display.faithful import first_line, visible
from conversations.erasure.steps import NotRedacted, redact
from conversations.ledger.redacted import is_redacted
from conversations.models import Conversation, Erasure, File, Output, Prompt, Redaction, Step, Verification
from conversations.prompts import startable

REDACT = "conversations.redact"
"""The permission to redact steps."""
REDACTING = (
    "The content disappears from the step, the page, searches and what models will read. The step itself stays: kinds,"
    " names of tools, decisions, codes, times and numbers. This cannot be undone.",
    "A call takes along its approvals and their decisions; a message, its files and the turns that repeat it.",
    "Backups, files in the workspace and the provider of the model keep what they have.",
)


class RecordPages(ReadOnly):
    """Pages of a table of the record, with links from conversations to prompts and from prompts to steps."""

    @admin.display(description="Conversation")
    def of_conversation(self, obj: Prompt | Step | Output | File | Redaction) -> SafeString:
        """Show a link to the conversation."""
        return link_to(obj.conversation)

    @admin.display(description="Prompt")
    def of_prompt(self, obj: Step | Output) -> SafeString:
        """Show a link to the prompt."""
        return link_to(obj.prompt, f"Prompt {obj.prompt.number}")


@admin.register(Conversation)
class ConversationAdmin(RecordPages):
    """Conversations."""

    list_display = ("id", "named", "kind", "owner", "seq", "active", "updated_at", "its_prompts")
    list_display_links = ("id", "named")
    list_filter = ("kind",)
    list_select_related = ("owner", "active_prompt")
    search_fields = ("title", "owner__username")
    fields = (
        "named", "kind", "owner", "active", "seq", "head", "created_at", "updated_at", "its_prompts", "its_steps",
    )  # fmt: skip

    @admin.display(description="Title", ordering="title")
    def named(self, obj: Conversation) -> SafeString:
        """Show the title."""
        return visible(str(obj))

    @admin.display(description="Active turn")
    def active(self, obj: Conversation) -> SafeString | str:
        """Show a link to the prompt that is running or waiting."""
        return link_to(obj.active_prompt, obj.active_prompt.get_state_display()) if obj.active_prompt else "-"

    its_prompts = list_column(Prompt, "Prompts", of="conversation")
    its_steps = list_column(Step, "Steps", of="conversation")


class PolicyFilter(admin.SimpleListFilter):
    """Turns by what they ran: the agent, or something that is started by name, such as a workflow."""

    title = "what it ran"
    parameter_name = "policy"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the agent and what is registered; one that was asked for, though it is no longer installed."""
        known = {AGENT: "The agent", **{f"{each.kind}:{each.name}": each.title for each in startable.registered()}}
        asked = request.GET.get(self.parameter_name)
        return list({**({asked: asked} if asked else {}), **known}.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the turns of the chosen one."""
        return queryset.filter(policy=self.value()) if self.value() else queryset


@admin.register(Prompt)
class PromptAdmin(RecordPages):
    """Turns."""

    list_display = (
        "id", "said", "of_conversation", "state", "stop_reason", "origin", "asked_by", "rounds", "created_at",
    )  # fmt: skip
    list_display_links = ("id", "said")
    list_filter = (
        PolicyFilter,
        "conversation__kind",
        "state",
        "origin",
        ("asked_by", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("conversation", "asked_by")
    search_fields = ("=conversation__id", "input", "asked_by__username")
    fields = (
        "of_conversation", "number", "whole_input", "origin", "asked_by", "policy", "tier", "visible", "continues",
        "repeats", "state", "stop_reason", "rounds", "pauses", "running_seconds", "input_tokens", "cached_tokens",
        "output_tokens", "reasoning_tokens", "cost_nano_usd", "created_at", "ended_at", "worker", "fence", "strikes",
        "outages", "its_outputs", "its_steps",
    )  # fmt: skip

    @admin.display(description="Message")
    def said(self, obj: Prompt) -> SafeString:
        """Show the beginning of the message."""
        return visible(first_line(obj.input or "-", 60))

    whole_input = whole_column("input", "Message")

    its_outputs = list_column(Output, "Outputs", of="prompt")
    its_steps = list_column(Step, "Steps", of="prompt")


@admin.register(Output)
class OutputAdmin(RecordPages):
    """Outputs."""

    list_display = ("id", "type", "tool", "result", "gate", "path", "of_prompt", "of_conversation")
    list_filter = ("gate",)
    list_select_related = ("conversation", "prompt__conversation")
    search_fields = ("=conversation__id", "tool")
    fields = ("of_conversation", "of_prompt", "position", "path", "parent", "type", "tool", "result", "gate", "content")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out the contents, which the list does not show."""
        return super().get_queryset(request).defer("data")

    content = whole_column("data", "Content")


@admin.register(Step)
class StepAdmin(RecordPages):
    """Steps of ledgers."""

    list_display = ("seq", "path_shown", "actor", "type", "time", "of_prompt", "of_conversation")
    list_select_related = ("conversation", "prompt__conversation")
    search_fields = ("=conversation__id",)
    search_help_text = "Search by conversation id"
    fields = (
        "of_conversation", "of_prompt", "seq", "path_shown", "actor", "type", "attempt", "time", "whole_payload",
        "digest", "taken_out",
    )  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        """Add the page on which a step is redacted."""
        view = self.admin_site.admin_view(self.redact)
        return [path("<int:pk>/redact/", view, name="conversations_step_redact"), *super().get_urls()]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add a link to redact the step, for people who may."""
        fields = super().get_fields(request, obj)
        open_ = obj is not None and request.user.has_perm(REDACT) and not is_redacted(obj.payload)
        return [*fields, "to_redact"] if open_ else fields

    def redact(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for a reason, and redact this step and the steps that repeat it."""
        if not (self.has_view_permission(request) and request.user.has_perm(REDACT)):
            raise PermissionDenied
        step = get_object_or_404(Step, pk=pk)

        def do(reason: str) -> str:
            done = redact(step.conversation, [step.seq], person(request), reason)
            text = f"Redacted {_steps(done.seqs)}."
            return f"{text} The same text is still in {_steps(done.copies)}." if done.copies else text

        question = Question(
            f"Redact step {step.seq}",
            f"Remove the content of step {step.seq} of {step.conversation} ({step.type} at {step.path or '.'})?",
            REDACTING,
            "Redact",
            reverse("admin:conversations_step_change", args=[pk]),
            do,
            (NotRedacted,),
        )
        return confirm(request, self, question)

    @admin.display(description="Redacted")
    def taken_out(self, obj: Step) -> SafeString | str:
        """Show who redacted it, when and why."""
        row = Redaction.objects.filter(conversation=obj.conversation_id, seq=obj.seq).first()
        return visible(f"by {row.redacted_by}, {row.redacted_at:%Y-%m-%d %H:%M}: {row.reason}") if row else "-"

    @admin.display(description="Content")
    def to_redact(self, obj: Step) -> SafeString:
        """Show a link to the page that redacts it."""
        address = reverse("admin:conversations_step_redact", args=[obj.pk])
        return format_html('<a class="link" href="{}">Redact this step…</a>', address)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out the payloads, which the list does not show."""
        return super().get_queryset(request).defer("payload")

    @admin.display(description="Path")
    def path_shown(self, obj: Step) -> str:
        """Show the path; "." for the turn itself."""
        return obj.path or "."

    whole_payload = whole_column("payload", "Payload")


@admin.register(File)
class FileAdmin(RecordPages):
    """Files made by tools. Only their owners can download the contents, not the admin."""

    list_display = ("id", "shown_name", "media_type", "size", "of_conversation", "created_at")
    list_display_links = ("id", "shown_name")
    list_select_related = ("conversation",)
    search_fields = ("=conversation__id", "name")
    fields = ("of_conversation", "shown_name", "media_type", "size", "sha256", "summary", "created_at")

    @admin.display(description="Name", ordering="name")
    def shown_name(self, obj: File) -> SafeString:
        """Show the name."""
        return visible(obj.name)


def _steps(seqs: Sequence[int]) -> str:
    return f"step{'s' if len(seqs) > 1 else ''} {', '.join(map(str, seqs))}"


@admin.register(Redaction)
class RedactionAdmin(RecordPages):
    """Redactions of steps: when and by whom."""

    list_display = ("seq", "of_conversation", "redacted_by", "redacted_at", "reason")
    list_select_related = ("conversation",)
    search_fields = ("=conversation__id", "redacted_by")


@admin.register(Verification)
class VerificationAdmin(RecordPages):
    """Results of checking all ledgers."""

    list_display = ("started_at", "ended_at", "nightly", "conversations", "steps", "count")
    fields = ("started_at", "beat_at", "ended_at", "nightly", "conversations", "steps", "count", "what")

    what = whole_column("problems", "Problems")


@admin.register(Erasure)
class ErasureAdmin(RecordPages):
    """Erasures of conversations: when and by whom."""

    list_display = ("conversation_id", "erased_by", "erased_at", "steps", "reason")
    search_fields = ("=conversation_id", "erased_by")
