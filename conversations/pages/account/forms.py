"""The forms of the account pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.forms.boundfield import BoundWidget
from django.http import HttpRequest

from conversations.accounts.zones import zones_by_region
from conversations.models import Account, Scope
from conversations.notifications.letters import compose
from conversations.notifications.mail import send_soon

if TYPE_CHECKING:  # Django's classes are generic only in its stubs
    UserForm = forms.ModelForm[User]
    SetPassword = SetPasswordForm[User]
else:
    UserForm, SetPassword = forms.ModelForm, SetPasswordForm

RESET_EVERY_SECONDS = 300
"""A user is sent a link to reset their password at most this often, whoever asks for it."""
ADVICE = "At least 8 characters. Not a common password, not only digits, and not similar to your name."
SCOPE_HINTS = (
    "your conversations, files, approvals and usage",
    "and read",
    "and read",
    "with their files, stop and repeat the runs, and read",
    "under /context; by itself, it reads nothing but the answers",
    "under /v1; by itself, it reads nothing of yours",
)
"""What the form says of each scope besides its label, in their order."""
LASTS = (("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Until it is revoked"))


def knows_password(request: HttpRequest, password: str) -> bool:
    """Whether the signed-in user knows their password. A wrong one counts as a failed sign-in."""
    return authenticate(request, username=request.user.get_username(), password=password) is not None


class Styled(forms.BaseForm):
    """A form whose text controls have the style of the site's pages. `labels`: those that differ from Django's."""

    labels: Mapping[str, str] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.label = self.labels.get(name, field.label)
            if not isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                field.widget.attrs["class"] = "input"


class Details(Styled, UserForm):
    """A user's name, e-mail address and time zone. Changing the address requires the password."""

    password = forms.CharField(
        required=False,
        strip=False,
        label="Current password",
        help_text="Needed only to change your e-mail address, as whoever reads that e-mail can reset your password.",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    zone = forms.ChoiceField(
        required=False,
        label="Time zone",
        help_text="Tells the agent which day it is for you, and when your quiet hours are. Pages show times as before.",
    )

    class Meta:
        model = User
        fields = ["first_name", "last_name", "email"]
        labels = {"first_name": "First name", "last_name": "Last name", "email": "E-mail address"}

    field_order = ["first_name", "last_name", "email", "password", "zone"]

    def __init__(self, request: HttpRequest, user: User, data: Any = None) -> None:
        account = Account.objects.filter(user=user).first()
        super().__init__(data, instance=copy(user), initial={"zone": account.zone} if account else {})
        self.request, self.old_address = request, user.email
        site = ("", f"The site\N{RIGHT SINGLE QUOTATION MARK}s: {settings.TIME_ZONE}")
        cast(forms.ChoiceField, self.fields["zone"]).choices = [site, *zones_by_region()]

    def clean(self) -> dict[str, Any]:
        """Require the password if the address changes."""
        cleaned = super().clean() or {}
        moved = "email" in cleaned and cleaned["email"] != self.old_address
        password = cleaned.get("password", "")
        if moved and not (password and knows_password(self.request, password)):
            self.add_error("password", "Enter your current password to change your e-mail address.")
        return cleaned

    def save(self, commit: bool = True) -> User:
        """Save the changed fields, and the time zone. The old address is told that it was replaced.

        No other field of the user is written, and nothing at all if they were deactivated since the form was loaded:
        they may have been erased.
        """
        user = self.instance
        with transaction.atomic():
            if not User.objects.select_for_update(no_key=True).get(pk=user.pk).is_active:
                return user
            user.save(update_fields=[name for name in self.changed_data if name in self.Meta.fields])
            Account.objects.update_or_create(user=user, defaults={"zone": self.cleaned_data["zone"]})
        if self.old_address and self.old_address != user.email:
            send_soon(compose(self.old_address, "Your e-mail address was changed", "mail/address.txt", {"user": user}))
        return user


def _limit(label: str) -> forms.IntegerField:
    """Return a field for a limit of a key. Whether the number makes sense is for `make_key` to say."""
    widget = forms.NumberInput(attrs={"min": 1, "placeholder": "No limit"})
    return forms.IntegerField(required=False, label=label, widget=widget)


class NewKey(Styled, forms.Form):
    """The form for a new API key. Its fields are the arguments of `make_key`."""

    name = forms.CharField(max_length=100, label="Name", help_text="What it is for.")
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        label="It may",
        error_messages={"required": "Choose what the key may do."},
    )
    only_models = forms.CharField(
        required=False,
        label="Models",
        help_text="By the names that programs write, one per line or separated by commas.",
        widget=forms.Textarea(
            attrs={"rows": 2, "placeholder": "All models", "spellcheck": "false", "autocapitalize": "none"}
        ),
    )
    requests_a_minute = _limit("Requests a minute")
    requests_a_day = _limit("Requests a day")
    tokens_a_day = _limit("Tokens a day")
    days = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, choices=LASTS, initial="90")

    labels = {"days": "Valid for"}

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, prefix="key")
        self.fields["only_models"].widget.attrs["class"] += " grows mono"

    def choices(self) -> list[tuple[BoundWidget, str]]:
        """Return the checkbox of each scope, with what else to know of it."""
        return list(zip(self["scopes"], SCOPE_HINTS, strict=True))

    def clean_only_models(self) -> list[str]:
        """Return the names of the models."""
        return re.split(r"[,\n]", self.cleaned_data["only_models"])


class NewPasswordFields(Styled):
    """The two fields of a new password, with a help text of one line. Errors are shown at the first one."""

    labels = {"old_password": "Current password", "new_password1": "New password", "new_password2": "Confirm password"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].help_text = ADVICE
        self.fields["new_password2"].help_text = ""

    def validate_password_for_user(self, user: User, password_field_name: str = "") -> None:
        """Report errors at the first field; Django would use the second."""
        super().validate_password_for_user(user, "new_password1")  # type: ignore[misc]

    def set_password_and_save(self, user: User, password_field_name: str = "", commit: bool = True) -> User:
        """Save the password alone; Django would write every field, and overwrite what was changed meanwhile."""
        super().set_password_and_save(user, password_field_name, commit=False)  # type: ignore[misc]
        user.save(update_fields=["password"])
        return user


class ChangePassword(NewPasswordFields, PasswordChangeForm):
    """The current password, and a new one typed twice."""

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        """Refuse a wrong password; it counts as a failed sign-in."""
        password: str = self.cleaned_data["old_password"]
        if not knows_password(self.request, password):
            raise forms.ValidationError("This is not your current password.", code="password_incorrect")
        return password


class NewPassword(NewPasswordFields, SetPassword):
    """A new password, typed twice, for a user who followed a reset link."""


class ForgottenPassword(Styled, PasswordResetForm):
    """The address to send a reset link to, if it belongs to an account."""

    labels = {"email": "E-mail address"}

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send the link in the background, and not more often to one user than every RESET_EVERY_SECONDS."""
        _subject, _text, context, _sender, address = args[:5]
        if cache.add(f"password-reset:{context['user'].pk}", 1, RESET_EVERY_SECONDS):
            send_soon(compose(address, "Reset your password", "mail/reset.txt", context))
