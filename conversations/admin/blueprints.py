"""Blueprints in the admin: writing them, and reading what agents proposed before it is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelect2MultipleWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents.models import Blueprint
from agents.models.blueprint import TAG_MOST, TAGS_MOST, TEXT_MOST, WHEN_MOST
from conversations.accounts.names import display_name
from conversations.admin.base import ListPages, one_piece
from conversations.display.faithful import in_line, plain, unseen, visible

if TYPE_CHECKING:  # as in base.py
    BlueprintRow = forms.ModelForm[Blueprint]
else:
    BlueprintRow = forms.ModelForm

SHOWN_MOST = 100
"""Characters of when to use it that the list shows."""
NO_GROUP = "Choose a group, or untick “Only for groups”: then the agents of everybody are told of it."
UNSEEN = "“{}” is not enabled: it was proposed, and has characters that cannot be seen. Open it and read it first."
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
        help_text="Only the agents of people in one of these groups are told of it.",
    )

    class Meta:
        model = Blueprint
        fields = ("name", "when", "tags", "text", "groups", "restricted", "enabled")

    def clean_when(self) -> str:
        """Return it as one line."""
        return " ".join(str(self.cleaned_data["when"]).split())

    def clean_text(self) -> str:
        """Return the text with "\\n" as line ends: browsers send others."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        """Restrict it if it has groups. Raises ValidationError if it would be enabled, and told to nobody."""
        given = super().clean() or self.cleaned_data
        given["restricted"] = given["restricted"] or bool(given.get("groups"))
        if given["restricted"] and given["enabled"] and "groups" in given and not given["groups"]:
            self.add_error("groups", NO_GROUP)
        return given


def whole(blueprint: Blueprint) -> str:
    """Return all that an administrator has to read of a blueprint."""
    tags = f"\nTags: {', '.join(blueprint.tags)}" if blueprint.tags else ""
    return f"{blueprint.name}\nWhen: {blueprint.when}{tags}\n\n{blueprint.text}"


def state_of(blueprint: Blueprint) -> str:
    """Return the state: one that was proposed and never enabled waits for somebody who reads it."""
    if blueprint.enabled:
        return "enabled"
    return "proposed" if blueprint.proposed else "disabled"


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
                return queryset.filter(enabled=False, proposed=chosen == "proposed")
        return queryset


@admin.register(Blueprint)
class BlueprintAdmin(ListPages):
    """Blueprints. A change takes effect with the next answer of every agent that is told of it."""

    form = BlueprintForm
    readonly_fields = ("marked", "proposer", "version", "changed_at")
    list_display = ("called", "used_when", "for_whom", "in_state", "proposer", "changed_at")
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, ("groups", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("proposed_by",)
    search_fields = ("name", "when", "text")
    actions = ("enable", "disable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Blueprint]:
        """Return them with their groups."""
        return super().get_queryset(request).prefetch_related("groups")

    def get_fields(self, request: HttpRequest, obj: Blueprint | None = None) -> tuple[str, ...]:
        """Return the fields. What cannot be seen in them is marked in one of its own, if there is any."""
        marked = ("marked",) if obj and unseen(whole(obj)) else ()
        return (*marked, *BlueprintForm.Meta.fields, "proposer", "version", "changed_at")

    @admin.display(description="Beware: it has characters that cannot be seen")
    def marked(self, obj: Blueprint) -> SafeString:
        """Show all of it, with marks."""
        return format_html('<pre class="whole">{}</pre>', visible(whole(obj)))

    @admin.display(description="Name", ordering="name")
    def called(self, obj: Blueprint) -> SafeString:
        """Show its name, with marks for what cannot be seen."""
        return one_piece(in_line(obj.name))

    @admin.display(description="When", ordering="when")
    def used_when(self, obj: Blueprint) -> str:
        """Show when it is used, shortened."""
        line = plain(obj.when)
        return line if len(line) <= SHOWN_MOST else f"{line[: SHOWN_MOST - 1].rstrip()}…"

    @admin.display(description="For")
    def for_whom(self, obj: Blueprint) -> str:
        """Show whose agents are told of it."""
        groups = ", ".join(group.name for group in obj.groups.all())
        return groups or ("nobody: its groups are gone" if obj.restricted else "everybody")

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
        """Save each as it is now: its words are written with it, or removed."""
        said, done = "Enabled" if enabled else "Disabled", 0
        for pk in list(queryset.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                blueprint = Blueprint.objects.select_for_update().exclude(enabled=enabled).filter(pk=pk).first()
                if blueprint is None:
                    continue
                if blueprint.proposed and unseen(whole(blueprint)):
                    messages.error(request, UNSEEN.format(plain(blueprint.name)))
                    continue
                blueprint.enabled = enabled
                blueprint.save()
                self.log_change(request, blueprint, f"{said}.")
                done += 1
        if done:
            messages.success(request, f"{said} {done} blueprint{pluralize(done)}.")
        else:
            messages.info(request, "No blueprint was changed.")
