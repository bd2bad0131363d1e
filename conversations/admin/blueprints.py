"""Blueprints in the admin: writing them, and reading what agents proposed before it is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from unfold.widgets import UnfoldAdminSelect2MultipleWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents.models import Blueprint
from agents.models.blueprint import TAG_MOST, TAGS_MOST, TEXT_MOST, WHEN_MOST
from conversations.accounts.names import display_name
from conversations.admin.base import ListPages
from conversations.display.faithful import inert

if TYPE_CHECKING:  # as in base.py
    BlueprintRow = forms.ModelForm[Blueprint]
else:
    BlueprintRow = forms.ModelForm

SHOWN_MOST = 100
"""Characters of when to use it that the list shows."""
STATES = {"proposed": "Proposed", "enabled": "Enabled", "disabled": "Disabled"}


class Tags(forms.CharField):
    """Tags, written with commas between them. Its value is the list of them."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> Any:
        """Return the text for the form."""
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        """Return the tags. Raises ValidationError for too many, or too long ones."""
        found = (" ".join(tag.split()) for tag in super().clean(value).split(","))
        tags = list(dict.fromkeys(filter(None, found)))
        if len(tags) > TAGS_MOST:
            raise forms.ValidationError(f"These are {len(tags)} tags: leave at most {TAGS_MOST}.")
        if long := [tag for tag in tags if len(tag) > TAG_MOST]:
            raise forms.ValidationError(f"Shorten “{long[0][:20]}…”: a tag has at most {TAG_MOST} characters.")
        return tags

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the text says something else."""
        return super().has_changed(self.prepare_value(initial), data)


class BlueprintForm(BlueprintRow):
    """The form of a blueprint."""

    when = forms.CharField(
        max_length=WHEN_MOST,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="When to use it, in words that people use who need it: it is found by them.",
    )
    tags = Tags(required=False, help_text="More words by which it is found, separated by commas.")
    text = forms.CharField(
        max_length=TEXT_MOST,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18}),
        help_text="What the agent is told then, as Markdown. It is told as knowledge, and lifts no approval.",
    )
    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text="Only the agents of people in one of these groups are told of it. None: those of everybody.",
    )

    class Meta:
        model = Blueprint
        fields = ("name", "when", "tags", "text", "groups", "enabled")

    def clean_when(self) -> str:
        """Return it as one line."""
        return " ".join(str(self.cleaned_data["when"]).split())

    def clean_text(self) -> str:
        """Return the text with "\\n" as line ends: browsers send others."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


def state_of(blueprint: Blueprint) -> str:
    """Return the state: one that was proposed and is disabled waits for somebody who reads it."""
    if blueprint.enabled:
        return "enabled"
    return "proposed" if blueprint.proposed_by_id else "disabled"


class StateFilter(admin.SimpleListFilter):
    """Blueprints by their state."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states."""
        return list(STATES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the blueprints in the chosen one."""
        match self.value():
            case "enabled":
                return queryset.filter(enabled=True)
            case "proposed" | "disabled" as chosen:
                return queryset.filter(enabled=False, proposed_by__isnull=chosen == "disabled")
        return queryset


@admin.register(Blueprint)
class BlueprintAdmin(ListPages):
    """Blueprints. A change takes effect with the next answer of every agent that is told of it."""

    form = BlueprintForm
    fields = ("name", "when", "tags", "text", "groups", "enabled", "proposer", "version", "changed_at")
    readonly_fields = ("proposer", "version", "changed_at")
    list_display = ("name", "used_when", "for_whom", "in_state", "proposer", "changed_at")
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, ("groups", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("proposed_by",)
    search_fields = ("name", "when", "text")
    ordering = ("name",)
    actions = ("enable", "disable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Blueprint]:
        """Return them with their groups."""
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="When", ordering="when")
    def used_when(self, obj: Blueprint) -> str:
        """Show when it is used, shortened."""
        line = inert(obj.when)
        return line if len(line) <= SHOWN_MOST else f"{line[: SHOWN_MOST - 1].rstrip()}…"

    @admin.display(description="For")
    def for_whom(self, obj: Blueprint) -> str:
        """Show whose agents are told of it."""
        return ", ".join(group.name for group in obj.groups.all()) or "everybody"

    @admin.display(description="State", ordering="enabled")
    def in_state(self, obj: Blueprint) -> str:
        """Show whether agents are told of it."""
        return STATES[state_of(obj)]

    @admin.display(description="Proposed by", ordering="proposed_by", empty_value="-")
    def proposer(self, obj: Blueprint) -> str | None:
        """Show whose agent proposed it."""
        return f"the agent of {display_name(obj.proposed_by)}" if obj.proposed_by else None

    @admin.action(description="Enable the selected blueprints", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Blueprint]) -> None:
        """Let agents be told of them."""
        self._set(request, queryset, enabled=True)

    @admin.action(description="Disable the selected blueprints", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Blueprint]) -> None:
        """Let no agent be told of them."""
        self._set(request, queryset, enabled=False)

    def _set(self, request: HttpRequest, queryset: QuerySet[Blueprint], *, enabled: bool) -> None:
        """Save each: its words are written with it, or removed."""
        said = "Enabled" if enabled else "Disabled"
        chosen = list(queryset.exclude(enabled=enabled))
        for blueprint in chosen:
            blueprint.enabled = enabled
            blueprint.save()
            self.log_change(request, blueprint, f"{said}.")
        messages.success(request, f"{said} {len(chosen)} blueprint{pluralize(len(chosen))}.")
