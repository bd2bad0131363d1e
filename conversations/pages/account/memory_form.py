"""The form of one memory: its text, and whether it is pinned."""

from __future__ import annotations

from typing import Any

from django import forms

from conversations.pages.account.forms import Styled


class MemoryForm(Styled, forms.Form):
    """A memory as its person writes it. How long it may be is for `keeping` to say, which counts a line end once."""

    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}), error_messages={"required": "Write what is to be remembered."}
    )
    pinned = forms.BooleanField(required=False, label="Pinned: the agent is always told of it")

    def __init__(self, data: Any = None, initial: dict[str, Any] | None = None, label: str = "Text") -> None:
        super().__init__(data, initial=initial)
        self.fields["text"].label = label
        self.fields["text"].widget.attrs["class"] += " grows"
