"""The form with which a person chooses what they are told of, in which ways, and when not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.forms.boundfield import BoundField

from conversations.accounts.zones import zone_of
from conversations.models import Account, NoticeKind
from conversations.notifications.choices import choose, ways_of
from conversations.notifications.kinds import KINDS
from conversations.notifications.webhooks.managing import PERMISSION
from conversations.pages.account.forms import Styled

WAYS = {"page": "In the browser", "mail": "By e-mail", "hook": "By webhook"}
"""The columns of the table, the last one for people who may have a webhook."""


class Notifications(Styled, forms.Form):
    """A checkbox for each kind of notification and each way, and the quiet hours: both times, or none."""

    quiet_from = forms.TimeField(required=False, label="Quiet from")
    quiet_to = forms.TimeField(required=False, label="Until")

    def __init__(self, user: User, data: Any = None) -> None:
        account = Account.objects.filter(user=user).first()
        initial: dict[str, Any] = {}
        if account:
            initial |= {"quiet_from": account.quiet_from, "quiet_to": account.quiet_to}
        boxes = {}
        self.ways = {way: column for way, column in WAYS.items() if way != "hook" or user.has_perm(PERMISSION)}
        for kind, ways in ways_of(user.pk).items():
            for way, column in self.ways.items():
                label = f"{KINDS[kind].choice}: {column.lower()}"
                boxes[f"{kind}-{way}"] = forms.BooleanField(required=False, label=label)
                initial[f"{kind}-{way}"] = getattr(ways, way)
        super().__init__(data, prefix="notices", initial=initial)
        self.user, self.zone = user, str(zone_of(user))
        self.fields |= boxes
        for name in ("quiet_from", "quiet_to"):
            self.fields[name].widget = forms.TimeInput(format="%H:%M", attrs={"type": "time", "class": "input"})

    def columns(self) -> list[str]:
        """Return the headings of the columns."""
        return list(self.ways.values())

    def rows(self) -> list[tuple[str, list[BoundField]]]:
        """Return the rows of the table: what each is about, and its boxes."""
        return [(rule.choice, [self[f"{kind}-{way}"] for way in self.ways]) for kind, rule in KINDS.items()]

    def clean(self) -> dict[str, Any]:
        """Require both times of the quiet hours or none, and that they differ."""
        cleaned = super().clean() or {}
        if not self.errors:
            start, end = cleaned["quiet_from"], cleaned["quiet_to"]
            if (start is None) != (end is None):
                missing = "quiet_from" if start is None else "quiet_to"
                self.add_error(missing, "Enter both times, or leave both empty.")
            elif start is not None and start == end:
                self.add_error("quiet_to", "Enter two different times. To be told nothing, untick the boxes above.")
        return cleaned

    def save(self) -> None:
        """Store what was chosen."""
        before = ways_of(self.user.pk)
        chosen = {
            kind: replace(before[kind], **{way: self.cleaned_data[f"{kind}-{way}"] for way in self.ways})
            for kind in map(NoticeKind, KINDS)
        }
        start, end = self.cleaned_data["quiet_from"], self.cleaned_data["quiet_to"]
        choose(self.user, chosen, (start, end) if start is not None and end is not None else None)
