"""System prompts: editing what a model is told first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from unfold.widgets import UnfoldBooleanWidget

from agents.models import SystemPrompt
from conversations.admin.base import ListPages

if TYPE_CHECKING:  # as in base.py
    PromptForm = forms.ModelForm[SystemPrompt]
else:
    PromptForm = forms.ModelForm


class SystemPromptForm(PromptForm):
    """The form of a system prompt. `default` is its own field: choosing another default replaces the old one."""

    default = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanWidget,
        help_text="Use this for conversations without a system prompt of their own. Replaces the current default.",
    )

    class Meta:
        model = SystemPrompt
        fields = ("name", "text", "default")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["default"].initial = self.instance.is_default


@admin.register(SystemPrompt)
class SystemPromptAdmin(ListPages):
    """System prompts. A change takes effect with the next turn."""

    form = SystemPromptForm
    fields = ("name", "text", "default")
    list_display = ("name", "is_default")
    search_fields = ("name", "text")

    def save_model(self, request: HttpRequest, obj: SystemPrompt, form: SystemPromptForm, change: bool) -> None:
        """Save it. There is at most one default."""
        obj.is_default = form.cleaned_data["default"]
        with transaction.atomic():
            if obj.is_default:
                SystemPrompt.objects.exclude(pk=obj.pk).update(is_default=False)
            super().save_model(request, obj, form, change)
