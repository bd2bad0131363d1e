"""Webhooks in the admin: those of the site and of people, and the log of what was sent, which can be sent again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from conversations.admin.base import Gone, ListPages, ReadOnly, going, link_to, one_piece, whole_column
from conversations.display.faithful import visible
from conversations.models import Delivery, Event, Webhook
from conversations.notifications.webhooks import managing
from conversations.pages.account.webhook_form import ChecksAddress, WebhookAddress

if TYPE_CHECKING:  # as in base.py
    WebhookForm = forms.ModelForm[Webhook]
else:
    WebhookForm = forms.ModelForm

EVENTS = [event for event in Event if event != Event.TEST]
"""What a webhook of the site can be told of."""


class SiteWebhook(ChecksAddress, WebhookForm):
    """The address of a webhook of the site, what it is told of, and whether it is on."""

    url = WebhookAddress(label="Address", widget=UnfoldAdminTextInputWidget)
    events = forms.MultipleChoiceField(
        choices=[(event.value, event.label) for event in EVENTS],
        initial=[event.value for event in EVENTS],
        widget=forms.CheckboxSelectMultiple,
        label="Told of",
    )

    class Meta:
        model = Webhook
        fields = ("url", "events", "on")
        widgets = {"on": UnfoldBooleanWidget}


class PersonsWebhook(WebhookForm):
    """Whether a webhook of a person is on: the rest is theirs."""

    class Meta:
        model = Webhook
        fields = ("on",)
        widgets = {"on": UnfoldBooleanWidget}


@admin.register(Webhook)
class WebhookAdmin(ListPages):
    """The list of webhooks, and a page of each. Those that are added here are the site's."""

    form = SiteWebhook
    list_display = ("host", "whose", "is_told_of", "in_state", "created_at")
    list_select_related = ("user",)
    list_filter = ("on",)
    search_fields = ("url", "user__username")
    actions = ("send_test", "make_secret")

    def get_form(self, request: HttpRequest, obj: Webhook | None = None, change: bool = False, **options: Any) -> Any:
        """Return the form of one of the site, or of a person."""
        form = PersonsWebhook if obj and obj.user_id else SiteWebhook
        return super().get_form(request, obj, change, **{"form": form, **options})

    def get_fields(self, request: HttpRequest, obj: Webhook | None = None) -> tuple[str, ...]:
        """Return the fields: what people are told of is theirs to choose, on the account page."""
        if obj is None:
            return ("url", "events")
        return ("url", "whose", "on", "off_reason") if obj.user_id else ("url", "events", "on", "off_reason")

    def get_readonly_fields(self, request: HttpRequest, obj: Webhook | None = None) -> tuple[str, ...]:
        """Return the fields that cannot be changed."""
        return ("url", "whose", "off_reason") if obj and obj.user_id else ("off_reason",)

    @admin.display(description="Whose", ordering="user__username")
    def whose(self, obj: Webhook) -> SafeString:
        """Show whose it is."""
        return one_piece(visible(obj.user.get_username() if obj.user else "The site's"))

    @admin.display(description="Told of")
    def is_told_of(self, obj: Webhook) -> str:
        """Show what it is told of."""
        if obj.user_id:
            return "What its owner chose"
        return ", ".join(event.label for event in EVENTS if event in obj.events)

    @admin.display(description="State", ordering="on")
    def in_state(self, obj: Webhook) -> str:
        """Show whether it is on, and why not."""
        return "On" if obj.on else f"Off. {obj.off_reason}".strip()

    def get_deleted_objects(self, objs: Iterable[Webhook], request: HttpRequest) -> Gone:
        """Return what the question says before webhooks are deleted: what they were told goes along."""
        return going(chosen := list(objs), deliveries=Delivery.objects.filter(webhook__in=chosen).count())

    def save_model(self, request: HttpRequest, obj: Webhook, form: SiteWebhook, change: bool) -> None:
        """Make it, or change what was changed."""
        given = form.cleaned_data
        if not change:
            obj.pk = managing.make(given["url"], events=given["events"])[0].pk
            return
        if "url" in form.changed_data:
            managing.move(obj, given["url"])
        if "events" in form.changed_data:
            obj.save(update_fields=["events"])
        if "on" in form.changed_data:
            (managing.switch_on if obj.on else managing.switch_off)(Webhook.objects.get(pk=obj.pk))

    def response_add(self, request: HttpRequest, obj: Webhook, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret, once."""
        return self._secret_page(request, obj)

    @admin.action(description="Send a test", permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """Send those that are on a test."""
        chosen = list(queryset.filter(on=True))
        for webhook in chosen:
            managing.send_test(webhook)
        said = f"A test is being sent to {len(chosen)} webhook{pluralize(len(chosen))}; the log says what came of it."
        messages.success(request, said)

    @admin.action(description="Make a new secret", permissions=["change"])
    def make_secret(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> HttpResponse | None:
        """Make a new secret of the one that is selected, and show it, once."""
        chosen = list(queryset[:2])
        if len(chosen) != 1 or chosen[0].user_id:
            messages.error(request, "Select one webhook of the site. People make the secrets of theirs.")
            return None
        self.log_change(request, chosen[0], "Made a new secret.")
        return self._secret_page(request, chosen[0])

    def _secret_page(self, request: HttpRequest, webhook: Webhook) -> HttpResponse:
        secret = managing.renew_secret(webhook)
        context = {"title": "The secret of the webhook", "webhook": webhook, "secret": secret}
        return self.page(request, "webhook/secret", context)  # like all of the admin's, it is not stored


@admin.register(Delivery)
class DeliveryAdmin(ReadOnly):
    """The log of webhooks: what was sent, what is waiting, and what failed."""

    list_display = ("created_at", "event", "to", "state", "tries", "status", "next_at", "what_failed")
    list_filter = ("state", "event", "webhook")
    list_select_related = ("webhook__user",)
    search_fields = ("message_id",)
    fields = (
        "message_id", "event", "to", "whole_body", "state", "tries", "status", "what_failed", "whole_answer",
        "created_at", "next_at", "delivered_at",
    )  # fmt: skip
    actions = ("send_again",)

    @admin.display(description="Webhook")
    def to(self, obj: Delivery) -> SafeString:
        """Show a link to the webhook."""
        return link_to(obj.webhook, obj.webhook.host)

    @admin.display(description="Problem")
    def what_failed(self, obj: Delivery) -> SafeString:
        """Show what was wrong with the last try."""
        return one_piece(visible(obj.error or "-"))

    whole_body = whole_column("body", "Body")
    whole_answer = whole_column("answer", "Answer")

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Send what was selected again, under the same ids."""
        chosen, sent = queryset.count(), managing.send_again(queryset)
        if sent:
            messages.success(
                request, f"{sent} deliver{pluralize(sent, 'y,ies')} will be sent again, under the same id."
            )
        if sent < chosen:
            left = chosen - sent
            messages.warning(request, f"{left} stay{pluralize(left, 's,')} as before: the webhook is switched off.")

    def has_send_permission(self, request: HttpRequest) -> bool:
        """Whether the person may send something again."""
        return request.user.has_perm("conversations.change_webhook")
