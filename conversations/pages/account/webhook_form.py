"""The form of a person's own webhook, and what the account page says of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User

from conversations.models import Delivery, Webhook
from conversations.notifications.webhooks.addresses import URL_MOST, BadAddress, checked, parsed
from conversations.notifications.webhooks.managing import PERMISSION
from conversations.pages.account.forms import Styled


class WebhookAddress(forms.CharField):
    """The address of a webhook."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=URL_MOST, **options)

    def clean(self, value: Any) -> Any:
        """Return the address as it is stored."""
        try:
            return str(parsed(super().clean(value)))
        except BadAddress as error:
            raise forms.ValidationError(str(error)) from error


class ChecksAddress(forms.BaseForm):
    """A form that takes a new address only if a webhook may be sent there now. The old one may have gone since."""

    def clean_url(self) -> str:
        """Return the address."""
        url: str = self.cleaned_data["url"]
        try:
            if url != self.get_initial_for_field(self.fields["url"], "url"):
                checked(parsed(url))
        except BadAddress as error:
            raise forms.ValidationError(str(error)) from error
        return url


class OwnWebhook(Styled, ChecksAddress, forms.Form):
    """The address of a person's webhook. `row`: the webhook, if they have one; `last`: what was sent to it last."""

    url = WebhookAddress(
        label="Address",
        widget=forms.URLInput(attrs={"placeholder": "https://example.org/hook", "autocomplete": "off"}),
    )

    def __init__(self, user: User, data: Any = None) -> None:
        self.row = Webhook.objects.filter(user=user).first()
        initial = {"url": self.row.url} if self.row else {}
        super().__init__(data, prefix="webhook", initial=initial)
        self.last: Delivery | None = self.row.deliveries.first() if self.row else None

    @classmethod
    def of(cls, user: User) -> OwnWebhook | None:
        """Return the form of this person; None if they may not have a webhook."""
        return cls(user) if user.has_perm(PERMISSION) else None
