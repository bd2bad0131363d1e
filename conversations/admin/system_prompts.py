"""System prompts: editing them, their versions, and the agents that they are chosen for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from agents.engine.outputs.change import Change
from agents.models import AgentPrompt, ChangedMeanwhile, SystemPrompt, SystemPromptVersion
from conversations.accounts.names import display_name
from conversations.admin.base import ListPages, person
from conversations.database.ids import row_id
from conversations.display.diff import diff
from conversations.display.faithful import inert, visible
from conversations.prompts.system_prompts import VARIABLES, agents, unknown_variables
from conversations.prompts.whole_prompt import PROTOCOLS, whole_prompt

if TYPE_CHECKING:  # as in base.py
    PromptForm = forms.ModelForm[SystemPrompt]
    AgentForm = forms.ModelForm[AgentPrompt]
    Inline = admin.TabularInline[AgentPrompt, SystemPrompt]
else:
    from unfold.admin import TabularInline as Inline

    PromptForm = AgentForm = forms.ModelForm

logger = logging.getLogger(__name__)
TEXT_MOST = 100_000
"""Maximum length of a system prompt, in characters. Every turn records it."""
VERSIONS_MOST = 100
"""The latest versions, which the page of a system prompt lists. The others have pages too."""
KNOWN = ", ".join(f"{{{name}}}" for name in VARIABLES)


class PromptText(forms.CharField):
    """A text with "\\n" as line ends: browsers send others."""

    def to_python(self, value: Any) -> Any:
        """Return the text."""
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text


class SystemPromptForm(PromptForm):
    """The form of a system prompt. A text that differs becomes the next version.

    `default` is its own field: choosing another default replaces the old one. `opened` is the number of the version
    that the page was opened with.
    """

    text = PromptText(
        max_length=TEXT_MOST,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18}),
        help_text="{user} is replaced by the name of the conversation's owner, {date} by the day on which the turn"
        " starts, in their time zone, and {site} by the address of this site. Anything else in braces stays.",
    )
    default = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanWidget,
        help_text="Use this for conversations without a system prompt of their own. Replaces the current default.",
    )
    opened = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = SystemPrompt
        fields = ("name", "text", "default", "retired")
        widgets = {"retired": UnfoldBooleanWidget}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "text" in self.fields:
            latest = self.instance.latest()
            self.fields["text"].initial, self.fields["opened"].initial = latest.text, latest.number
            self.fields["default"].initial = self.instance.is_default

    def clean(self) -> dict[str, Any]:
        """Refuse to retire the default, and to overwrite a version that was saved since the page was opened."""
        given = super().clean() or {}
        if given.get("default") and given.get("retired"):
            self.add_error("retired", "The default cannot be retired. Make another system prompt the default first.")
        if self.instance.pk:
            self._check_opened(given.get("opened"))
        return given

    def _check_opened(self, opened: int | None) -> None:
        """Refuse a text that was written without knowing the latest one. What was typed is kept.

        Sent again, it is accepted: its writer has been told.
        """
        if opened is None:
            raise forms.ValidationError("This form is incomplete. Reload the page and enter your changes again.")
        SystemPrompt.objects.select_for_update().get(pk=self.instance.pk)  # until it is saved
        latest = self.instance.latest()
        if opened == latest.number:
            return
        self.data = cast(QueryDict, self.data).copy()
        self.data[self.add_prefix("opened")] = str(latest.number)
        told = "{} saved version {} while you had this page open. {} Your text is kept here: save again to make it the"
        self.add_error(
            "text",
            format_html(
                told + " next version.",
                inert(author(latest)),
                latest.number,
                format_html(
                    '<a class="link" href="{}?before={}&amp;after={}" target="_blank">See what they changed.</a>',
                    reverse("admin:agents_systemprompt_versions", args=[self.instance.pk]),
                    opened,
                    latest.number,
                ),
            ),
        )


class AgentPromptForm(AgentForm):
    """The choice of an agent. One that is no longer installed stays."""

    policy = forms.ChoiceField(label="Agent", widget=UnfoldAdminSelectWidget)

    class Meta:
        model = AgentPrompt
        fields = ("policy",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = [(name, f"{title} ({name})") for name, title in agents()]
        policy = self.instance.policy
        gone = [(policy, f"{policy} (not installed)")] if policy and policy not in dict(known) else []
        cast(forms.ChoiceField, self.fields["policy"]).choices = [("", "Choose an agent"), *known, *gone]


class AgentPromptInline(Inline):
    """The agents that a system prompt is chosen for."""

    model = AgentPrompt
    form = AgentPromptForm
    extra = 1
    verbose_name = "agent"
    verbose_name_plural = "Agents that have this system prompt"


@admin.register(SystemPrompt)
class SystemPromptAdmin(ListPages):
    """System prompts. A change takes effect with the next turn."""

    form = SystemPromptForm
    inlines = (AgentPromptInline,)
    list_display = ("name", "state", "version")
    search_fields = ("name", "versions__text")
    change_form_outer_after_template = "admin/conversations/systemprompt/versions.html"

    def get_fields(self, request: HttpRequest, obj: SystemPrompt | None = None) -> tuple[str, ...]:
        """Return the fields; without the hidden one for whoever may only look."""
        fields = ("name", "text", "default", "retired")
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return (*fields, "opened") if may else fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[SystemPrompt]:
        """Return the system prompts with the numbers of their latest versions."""
        found: QuerySet[SystemPrompt] = super().get_queryset(request)
        return found.annotate(newest=Max("versions__number"))

    @admin.display(description="State")
    def state(self, obj: SystemPrompt) -> str:
        """Show whether it is the default, or retired."""
        return "Default" if obj.is_default else "Retired" if obj.retired else "-"

    @admin.display(description="Version", ordering="newest")
    def version(self, obj: SystemPrompt) -> int:
        """The number of its latest version."""
        return int(getattr(obj, "newest"))  # noqa: B009 - the query adds it

    def text(self, obj: SystemPrompt) -> SafeString:
        """Show the text to whoever may not change it."""
        return format_html('<pre class="whole">{}</pre>', visible(obj.latest().text))

    @admin.display(boolean=True)
    def default(self, obj: SystemPrompt) -> bool:
        """Show whether it is the default to whoever may not change that."""
        return obj.is_default

    def has_delete_permission(self, request: HttpRequest, obj: SystemPrompt | None = None) -> bool:
        """Whether the person may delete it: never one that a turn has run with, whose record names it."""
        return super().has_delete_permission(request, obj) and not (obj and obj.used)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask, and delete it; not if somebody begins to use it at the same moment."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except IntegrityError:
            return self._not_deleted(request)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, and delete what was ticked: all or nothing."""
        try:
            with transaction.atomic():
                return super().changelist_view(request, extra_context)
        except IntegrityError:
            return self._not_deleted(request)

    def _not_deleted(self, request: HttpRequest) -> HttpResponse:
        messages.error(
            request, "Nothing was deleted: somebody began to use it at the same moment. Try again, or retire it."
        )
        return redirect("admin:agents_systemprompt_changelist")

    def save_model(self, request: HttpRequest, obj: SystemPrompt, form: SystemPromptForm, change: bool) -> None:
        """Save it, and its text if that has changed. There is at most one default."""
        given = form.cleaned_data
        obj.is_default = given["default"]
        with transaction.atomic():
            if obj.is_default:
                SystemPrompt.objects.exclude(pk=obj.pk).update(is_default=False)
            super().save_model(request, obj, form, change)
            obj.write(given["text"], person(request), given["opened"] if change else None)
        if unknown := unknown_variables(given["text"]):
            names = ", ".join(f"{{{name}}}" for name in unknown)
            told = f"These are not variables, and stay as they are written: {names}. The variables are {KNOWN}."
            messages.warning(request, told)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form, and the versions below it."""
        pk = row_id(object_id)
        rows = SystemPromptVersion.objects.filter(prompt=pk).select_related("changed_by")
        versions = list(rows[: VERSIONS_MOST + 1])
        more = {
            "versions": [(row, author(row)) for row in versions[:VERSIONS_MOST]],
            "earlier": len(versions) > VERSIONS_MOST,
            "compare": pk and reverse("admin:agents_systemprompt_versions", args=[pk]),
            "whole": pk and reverse("admin:agents_systemprompt_whole", args=[pk]),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    def get_urls(self) -> list[URLPattern]:
        """Add the page of versions, and that of the whole prompt."""
        versions, whole = map(self.admin_site.admin_view, (self.versions_view, self.whole_view))
        return [
            path("<int:pk>/versions/", versions, name="agents_systemprompt_versions"),
            path("<int:pk>/whole/", whole, name="agents_systemprompt_whole"),
            *super().get_urls(),
        ]

    @method_decorator(require_safe)
    def whole_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show all that a model is told before the messages, for both protocols, as it is for the person who looks."""
        prompt = get_object_or_404(SystemPrompt, pk=pk)
        if not self.has_view_permission(request, prompt):
            raise PermissionDenied
        latest, wholes, problem = prompt.latest(), [], ""
        try:
            wholes = [whole_prompt(latest, person(request), protocol) for protocol in PROTOCOLS]
        except Exception:
            logger.exception("the whole prompt cannot be made")
            problem = "A plugin cannot say what it adds to a turn before one begins. The log says why."
        context = {"title": inert(f"{prompt.name}: the whole prompt"), "prompt": prompt, "latest": latest}
        return self.page(request, "systemprompt/whole", {**context, "wholes": wholes, "problem": problem})

    def versions_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the version `?after=`, by default the latest, and what changed in it since the version `?before=`, by
        default the one before it. POST makes its text the next version.
        """
        prompt = get_object_or_404(SystemPrompt, pk=pk)
        if not self.has_view_permission(request, prompt):
            raise PermissionDenied
        latest = prompt.latest()
        after = _version(prompt, request.GET.get("after", str(latest.number)))
        if request.method != "POST":
            return self._versions_page(request, after, latest)
        if not self.has_change_permission(request, prompt):
            raise PermissionDenied
        return self._use_again(request, after, latest)

    def _use_again(self, request: HttpRequest, old: SystemPromptVersion, latest: SystemPromptVersion) -> HttpResponse:
        """Make the text of an old version the next one. 409 if `opened` is not the latest, and nothing is written."""
        prompt = old.prompt
        try:
            written = prompt.write(old.text, person(request), row_id(request.POST.get("opened", "")) or 0)
        except ChangedMeanwhile as error:
            problem = f"{author(error.latest)} saved version {error.latest.number} in the meantime. Look at it first."
            return self._versions_page(request, old, error.latest, problem, 409)
        if written is None:
            messages.info(request, f"Version {latest.number} has this text already.")
        else:
            self.log_change(request, prompt, f"Used the text of version {old.number} again.")
            messages.success(request, f"Version {written.number} has the text of version {old.number}.")
        return redirect("admin:agents_systemprompt_change", prompt.pk)

    def _versions_page(
        self,
        request: HttpRequest,
        after: SystemPromptVersion,
        latest: SystemPromptVersion,
        problem: str = "",
        status: int = 200,
    ) -> HttpResponse:
        prompt = after.prompt
        before = _version(prompt, request.GET.get("before", str(max(after.number - 1, 1))))
        change = Change(path=prompt.name, before=f"{before.text}\n", after=f"{after.text}\n")
        context = {
            "title": inert(f"{prompt.name}, version {after.number}"),
            "prompt": prompt,
            "before": before,
            "after": after,
            "author": author(after),
            "latest": latest,
            "diff": None if before == after or change.too_large else diff(change),
            "too_large": change.too_large,
            "may_use": after != latest and self.has_change_permission(request, prompt),
            "problem": problem,
        }
        return self.page(request, "systemprompt/version", context, status)


def author(version: SystemPromptVersion) -> str:
    """Return the name of whoever wrote a version."""
    return display_name(version.changed_by) if version.changed_by else "the site"


def _version(prompt: SystemPrompt, number: str) -> SystemPromptVersion:
    """Return the version with this number. Raises Http404."""
    found = prompt.versions.select_related("changed_by", "prompt").filter(number=row_id(number) or 0).first()
    if found is None:
        raise Http404("There is no such version.")
    return found
