"""The record, to be read: nobody adds, changes or deletes anything here."""

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

from conversations.admin.base import ReadOnly, link_to, link_to_list, whole
from conversations.admin.confirm import Question, confirm
from conversations.admin.detail import person
from conversations.display.faithful import first_line, visible
from conversations.erasure.steps import NotRedacted, redact
from conversations.ledger.redacted import is_redacted
from conversations.models import Conversation, Erasure, File, Output, Prompt, Redaction, Step, Verification

REDACT = "conversations.redact"
"""The permission to take the content out of steps."""
REDACTING = (
    "What was said goes, from the step, from the page, from searches and from what models will read of it. That it was"
    " said stays: kinds, names of tools, decisions, codes, times and numbers. It cannot be undone.",
    "With a call go its approvals and their decisions; with a message, its files and the turns that ask it again.",
    "Backups and the files of the workspace keep what they have, and so does whoever answered for the model.",
)


class RecordPages(ReadOnly):
    """A table of the record. Links lead from a conversation to its prompts, and from those to their steps."""

    @admin.display(description="Conversation")
    def of_conversation(self, obj: Prompt | Step | Output | File | Redaction) -> SafeString:
        """A link to the conversation."""
        return link_to(obj.conversation)

    @admin.display(description="Prompt")
    def of_prompt(self, obj: Step | Output) -> SafeString:
        """A link to the prompt."""
        return link_to(obj.prompt, f"Prompt {obj.prompt.number}")


@admin.register(Conversation)
class ConversationAdmin(RecordPages):
    """Conversations."""

    list_display = ("id", "named", "owner", "seq", "active", "updated_at", "its_prompts")
    list_display_links = ("id", "named")
    list_select_related = ("owner", "active_prompt")
    search_fields = ("title", "owner__username")
    fields = ("named", "owner", "active", "seq", "head", "created_at", "updated_at", "its_prompts", "its_steps")

    @admin.display(description="Title", ordering="title")
    def named(self, obj: Conversation) -> SafeString:
        """The title."""
        return visible(str(obj))

    @admin.display(description="Runs or waits")
    def active(self, obj: Conversation) -> SafeString | str:
        """A link to the prompt that runs or waits."""
        return link_to(obj.active_prompt, obj.active_prompt.get_state_display()) if obj.active_prompt else "-"

    @admin.display(description="Prompts")
    def its_prompts(self, obj: Conversation) -> SafeString:
        """A link to its prompts."""
        return link_to_list(Prompt, "Prompts", conversation__id__exact=obj.pk)

    @admin.display(description="Steps")
    def its_steps(self, obj: Conversation) -> SafeString:
        """A link to its steps."""
        return link_to_list(Step, "Steps", conversation__id__exact=obj.pk)


@admin.register(Prompt)
class PromptAdmin(RecordPages):
    """Turns."""

    list_display = (
        "id",
        "said",
        "of_conversation",
        "state",
        "stop_reason",
        "origin",
        "asked_by",
        "rounds",
        "created_at",
    )
    list_display_links = ("id", "said")
    list_filter = ("state", "origin")
    list_select_related = ("conversation", "asked_by")
    search_fields = ("=conversation__id", "input", "asked_by__username")
    fields = (
        "of_conversation", "number", "whole_input", "origin", "asked_by", "policy", "tier", "visible", "continues",
        "repeats", "state", "stop_reason", "rounds", "running_seconds", "input_tokens", "cached_tokens",
        "output_tokens", "reasoning_tokens", "cost_nano_usd", "created_at", "ended_at", "worker", "fence", "strikes",
        "its_outputs", "its_steps",
    )  # fmt: skip

    @admin.display(description="Said")
    def said(self, obj: Prompt) -> SafeString:
        """How the message begins."""
        return visible(first_line(obj.input or "-", 60))

    @admin.display(description="Said")
    def whole_input(self, obj: Prompt) -> SafeString:
        """The message."""
        return whole(obj.input or "")

    @admin.display(description="Outputs")
    def its_outputs(self, obj: Prompt) -> SafeString:
        """A link to its outputs."""
        return link_to_list(Output, "Outputs", prompt__id__exact=obj.pk)

    @admin.display(description="Steps")
    def its_steps(self, obj: Prompt) -> SafeString:
        """A link to its steps."""
        return link_to_list(Step, "Steps", prompt__id__exact=obj.pk)


@admin.register(Output)
class OutputAdmin(RecordPages):
    """Entries of timelines."""

    list_display = ("id", "type", "tool", "result", "gate", "path", "of_prompt", "of_conversation")
    list_filter = ("gate",)
    list_select_related = ("conversation", "prompt__conversation")
    search_fields = ("=conversation__id", "tool")
    ordering = ("-id",)
    fields = ("of_conversation", "of_prompt", "position", "path", "parent", "type", "tool", "result", "gate", "content")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without the contents, which the list does not show."""
        return super().get_queryset(request).defer("data")

    @admin.display(description="Content")
    def content(self, obj: Output) -> SafeString:
        """The output as it is stored."""
        return whole(obj.data)


@admin.register(Step)
class StepAdmin(RecordPages):
    """What happened."""

    list_display = ("seq", "path_shown", "actor", "type", "time", "of_prompt", "of_conversation")
    list_select_related = ("conversation", "prompt__conversation")
    search_fields = ("=conversation__id",)
    search_help_text = "The number of a conversation"
    fields = (
        "of_conversation", "of_prompt", "seq", "path_shown", "actor", "type", "attempt", "time", "whole_payload",
        "digest", "taken_out",
    )  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        """And the page on which a step is redacted."""
        view = self.admin_site.admin_view(self.redact)
        return [path("<int:pk>/redact/", view, name="conversations_step_redact"), *super().get_urls()]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """With a way to redact it, for whoever may."""
        fields = super().get_fields(request, obj)
        open_ = obj is not None and request.user.has_perm(REDACT) and not is_redacted(obj.payload)
        return [*fields, "to_redact"] if open_ else fields

    def redact(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Asks for a reason, and takes the content out of this step and of what repeats it."""
        if not (self.has_view_permission(request) and request.user.has_perm(REDACT)):
            raise PermissionDenied
        step = get_object_or_404(Step, pk=pk)

        def do(reason: str) -> str:
            done = redact(step.conversation, [step.seq], person(request), reason)
            told = f"Redacted: {_steps(done.seqs)}."
            return f"{told} The same text stands in {_steps(done.copies)}: look there too." if done.copies else told

        question = Question(
            f"Redact step {step.seq}",
            f"Take the content out of step {step.seq} of {step.conversation} ({step.type} at {step.path or '.'})?",
            REDACTING,
            "Redact",
            reverse("admin:conversations_step_change", args=[pk]),
        )
        return confirm(request, self, question, do, (NotRedacted,))

    @admin.display(description="Redacted")
    def taken_out(self, obj: Step) -> SafeString | str:
        """Who took its content out, when and why."""
        row = Redaction.objects.filter(conversation=obj.conversation_id, seq=obj.seq).first()
        return visible(f"by {row.redacted_by}, {row.redacted_at:%Y-%m-%d %H:%M}: {row.reason}") if row else "-"

    @admin.display(description="Content")
    def to_redact(self, obj: Step) -> SafeString:
        """The way to the page that asks."""
        address = reverse("admin:conversations_step_redact", args=[obj.pk])
        return format_html('<a class="link" href="{}">Redact this step…</a>', address)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without the payloads, which the list does not show."""
        return super().get_queryset(request).defer("payload")

    @admin.display(description="Path")
    def path_shown(self, obj: Step) -> str:
        """The path; "." for the turn itself."""
        return obj.path or "."

    @admin.display(description="Payload")
    def whole_payload(self, obj: Step) -> SafeString:
        """The payload as it is stored."""
        return whole(obj.payload)


@admin.register(File)
class FileAdmin(RecordPages):
    """Files that tools made. Their content is the owner's to download, not the admin's."""

    list_display = ("id", "shown_name", "media_type", "size", "of_conversation", "created_at")
    list_display_links = ("id", "shown_name")
    list_select_related = ("conversation",)
    search_fields = ("=conversation__id", "name")
    fields = ("of_conversation", "shown_name", "media_type", "size", "sha256", "summary", "created_at")

    @admin.display(description="Name", ordering="name")
    def shown_name(self, obj: File) -> SafeString:
        """The name."""
        return visible(obj.name)


def _steps(seqs: Sequence[int]) -> str:
    return f"step{'s' if len(seqs) > 1 else ''} {', '.join(map(str, seqs))}"


@admin.register(Redaction)
class RedactionAdmin(RecordPages):
    """What was taken out of steps, when and by whom."""

    list_display = ("seq", "of_conversation", "redacted_by", "redacted_at", "reason")
    list_select_related = ("conversation",)
    search_fields = ("=conversation__id", "redacted_by")


@admin.register(Verification)
class VerificationAdmin(RecordPages):
    """What came of checking all ledgers."""

    list_display = ("started_at", "ended_at", "nightly", "conversations", "steps", "count")
    fields = ("started_at", "beat_at", "ended_at", "nightly", "conversations", "steps", "count", "what")

    @admin.display(description="Problems")
    def what(self, obj: Verification) -> SafeString:
        """The first of them, a line each."""
        return whole(obj.problems)


@admin.register(Erasure)
class ErasureAdmin(RecordPages):
    """What was erased, when and by whom."""

    list_display = ("conversation_id", "erased_by", "erased_at", "steps", "reason")
    search_fields = ("=conversation_id", "erased_by")
