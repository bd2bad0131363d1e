"""The settings of workflows in the admin: whether each may be run, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from conversations.admin.base import ListPages
from workflows import discovery
from workflows.models import WorkflowSetting

if TYPE_CHECKING:  # Django's class takes a parameter only from its stubs
    Form = forms.ModelForm[WorkflowSetting]
else:
    Form = forms.ModelForm

GONE = "{name} (not installed)"


class SettingForm(Form):
    """A setting: its workflow is one that is installed and has none yet, and its permission one that there is."""

    name = forms.ChoiceField(label="Workflow", widget=UnfoldAdminSelectWidget)
    permission = forms.CharField(
        required=False,
        help_text=WorkflowSetting._meta.get_field("permission").help_text,
        widget=UnfoldAdminTextInputWidget,
    )

    class Meta:
        model = WorkflowSetting
        fields = ("name", "enabled", "permission", "groups", "list_to_others")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        installed, mine = discovery.installed(), self.instance.name
        taken = set(WorkflowSetting.objects.exclude(pk=self.instance.pk).values_list("name", flat=True))
        choices = [(name, f"{each.title} ({name})") for name, each in installed.items() if name not in taken]
        if mine and mine not in installed:
            choices.append((mine, GONE.format(name=mine)))
        field = self.fields["name"]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices
            field.help_text = "Without a setting, what its author declared holds."
            if not choices:
                field.help_text = "Every installed workflow has a setting already."

    def clean_permission(self) -> str:
        """Return the permission. A name that nobody can have would lock everybody out but administrators."""
        name = str(self.cleaned_data["permission"]).strip()
        app, _, codename = name.partition(".")
        if name and not Permission.objects.filter(content_type__app_label=app, codename=codename).exists():
            raise forms.ValidationError(f"There is no permission {name!r}. Write app.codename, as in auth.add_user.")
        return name


@admin.register(WorkflowSetting)
class WorkflowSettingAdmin(ListPages):
    """Whether each workflow may be run, and by whom."""

    form = SettingForm
    list_display = ("named", "enabled", "permission", "its_groups", "list_to_others")
    list_display_links = ("named",)
    list_filter = ("enabled",)
    search_fields = ("name",)
    filter_horizontal = ("groups",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Read the groups of all rows at once."""
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="Workflow", ordering="name")
    def named(self, obj: WorkflowSetting) -> str:
        """Show its title and name; of one that is not installed, that it is not."""
        known = discovery.installed().get(obj.name)
        return f"{known.title} ({obj.name})" if known else GONE.format(name=obj.name)

    @admin.display(description="Groups")
    def its_groups(self, obj: WorkflowSetting) -> str:
        """Show the groups whose members may run it."""
        return ", ".join(group.name for group in obj.groups.all()) or "-"
