"""What agents are told besides system prompts: editing skills, and what people are suggested to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin
from unfold.widgets import UnfoldAdminSelect2MultipleWidget, UnfoldAdminTextareaWidget

from agents import discovery
from agents.markdown_files import FILE_MOST
from agents.models import Skill, Suggestion
from agents.plugins.skills.plugin import OWN_TOOLS
from agents.skills import missing_tools
from conversations.admin.base import ListPages

if TYPE_CHECKING:  # as in base.py
    SkillRow = forms.ModelForm[Skill]
else:
    SkillRow = forms.ModelForm


class SkillForm(SkillRow):
    """The form of a skill. It offers the installed tools, and names chosen ones that are not installed."""

    body = forms.CharField(
        max_length=FILE_MOST,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18}),
        help_text="What the agent is told while the skill is active, as Markdown.",
    )
    tools = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text="These tools are offered only while a skill that names them is active. Tools that no skill names are"
        " always offered.",
    )

    class Meta:
        model = Skill
        fields = ("name", "description", "tools", "enabled", "body")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = [name for name in self.instance.tools if isinstance(name, str)]
        tools = [(tool.name, f"{tool.name}: {tool.title}") for tool in discovery.installed().tools]
        gone = [(name, f"{name} (not installed)") for name in missing_tools(chosen)]
        field = cast(forms.MultipleChoiceField, self.fields["tools"])
        field.choices = [choice for choice in tools if choice[0] not in OWN_TOOLS] + gone

    def clean_body(self) -> str:
        """Return the text with "\\n" as line ends: browsers send others."""
        return str(self.cleaned_data["body"]).replace("\r\n", "\n")

    def clean_tools(self) -> list[str]:
        """Return the names of tools. Raises ValidationError if one is not installed."""
        names: list[str] = self.cleaned_data["tools"]
        if missing := missing_tools(names):
            raise forms.ValidationError(f"These tools are not installed, remove them: {', '.join(missing)}.")
        return names


@admin.register(Skill)
class SkillAdmin(ListPages):
    """Skills. A change takes effect with an agent's next answer, even if the skill is already active."""

    form = SkillForm
    fields = ("name", "description", "tools", "enabled", "body")
    list_display = ("name", "description", "with_tools", "enabled")
    list_filter: ClassVar[tuple[str, ...]] = ("enabled",)
    search_fields = ("name", "description", "body")

    @admin.display(description="Tools")
    def with_tools(self, obj: Skill) -> str:
        """Show the tools that come with it."""
        return ", ".join(obj.tools) or "-"


@admin.register(Suggestion)
class SuggestionAdmin(ListPages):
    """What the page of a new conversation suggests, in its order. The demo model has suggestions of its own."""

    list_display = ("text", "order")
    ordering = ("order", "pk")
    search_fields = ("text",)
