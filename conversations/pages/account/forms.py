"""What people type about themselves."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest

from conversations.models import Account, Scope
from conversations.notifications.letters import compose
from conversations.notifications.mail import send_soon

if TYPE_CHECKING:  # Django's classes take parameters only from its stubs
    UserForm = forms.ModelForm[User]
    PasswordChange = PasswordChangeForm
    SetPassword = SetPasswordForm[User]
else:
    UserForm, PasswordChange, SetPassword = forms.ModelForm, PasswordChangeForm, SetPasswordForm

RESET_EVERY_SECONDS = 300
"""A person is sent a link to reset their password this often at most, whoever asks for it."""
LASTS = (("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Until it is revoked"))


def knows_password(request: HttpRequest, password: str) -> bool:
    """Whether somebody who is signed in knows the password. A wrong one counts as a try to sign in."""
    return authenticate(request, username=request.user.get_username(), password=password) is not None


class Styled:
    """The fields of a form as the site's pages show them."""

    fields: dict[str, forms.Field]

    def style(self) -> None:
        """Give each control of text its class."""
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                field.widget.attrs["class"] = "input"


class Details(Styled, UserForm):
    """Name and address of a person, and whether mails are wanted. Another address needs the password."""

    mail = forms.BooleanField(required=False, label="E-mail me when a turn waits for me and I do not look")
    password = forms.CharField(
        required=False,
        strip=False,
        label="Current password",
        help_text="Only for another e-mail address: whoever reads its mail can reset your password.",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    class Meta:
        model = User
        fields = ["first_name", "last_name", "email"]
        labels = {"first_name": "First name", "last_name": "Last name", "email": "E-mail address"}

    field_order = ["first_name", "last_name", "email", "password", "mail"]

    def __init__(self, request: HttpRequest, user: User, data: Any = None) -> None:
        account = Account.objects.filter(user=user).first()
        super().__init__(data, instance=copy(user), initial={"mail": account.mail if account else True})
        self.request, self.old_address = request, user.email
        self.style()

    def clean(self) -> dict[str, Any]:
        """With the password asked for where the address is another one."""
        cleaned = super().clean() or {}
        moved = "email" in cleaned and cleaned["email"] != self.old_address
        password = cleaned.get("password", "")
        if moved and not (password and knows_password(self.request, password)):
            self.add_error("password", "For another e-mail address your current password is needed.")
        return cleaned

    def save(self, commit: bool = True) -> User:
        """What was changed here, and whether mails are wanted. A changed address is told to the old one.

        Nothing else of the person is written, and nothing at all where they were deactivated since the form was read:
        they may have been erased.
        """
        user = self.instance
        with transaction.atomic():
            if not User.objects.select_for_update(no_key=True).get(pk=user.pk).is_active:
                return user
            user.save(update_fields=[name for name in self.changed_data if name in self.Meta.fields])
            Account.objects.update_or_create(user=user, defaults={"mail": self.cleaned_data["mail"]})
        if self.old_address and self.old_address != user.email:
            send_soon(compose(self.old_address, "Your e-mail address was changed", "mail/address.txt", {"user": user}))
        return user


class NewKey(Styled, forms.Form):
    """An API key that is to be made."""

    name = forms.CharField(max_length=100, label="Name", help_text="What it is for.")
    scopes = forms.MultipleChoiceField(
        required=False,
        choices=[(scope.value, scope.label) for scope in Scope if scope != Scope.READ],
        widget=forms.CheckboxSelectMultiple,
        label="Besides reading it may",
    )
    days = forms.ChoiceField(required=False, choices=LASTS, initial="90", label="It works for")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, prefix="key")
        self.style()

    @property
    def lasts(self) -> int | None:
        """Days; None for a key that does not expire."""
        return int(self.cleaned_data["days"]) if self.cleaned_data["days"] else None


class Chosen(Styled):
    """A new password, typed twice; what is wrong with it stands at the first."""

    def word(self) -> None:
        """Say what is asked for in one line."""
        first, second = self.fields["new_password1"], self.fields["new_password2"]
        first.label, second.label = "New password", "The same again"
        first.help_text = "At least 8 characters; no common one, not only digits, and nothing like your name."
        second.help_text = ""
        self.style()

    def validate_password_for_user(self, user: User, password_field_name: str = "") -> None:
        """Django says it at the second."""
        super().validate_password_for_user(user, "new_password1")  # type: ignore[misc]

    def set_password_and_save(self, user: User, password_field_name: str = "", commit: bool = True) -> User:
        """Django writes the whole person, and with it whatever was changed meanwhile."""
        super().set_password_and_save(user, password_field_name, commit=False)  # type: ignore[misc]
        user.save(update_fields=["password"])
        return user


class ChangePassword(Chosen, PasswordChange):
    """The old password, and the new one twice."""

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.request = request
        self.fields["old_password"].label = "Current password"
        self.word()

    def clean_old_password(self) -> str:
        """Refused where it is wrong, which counts as a try to sign in."""
        password: str = self.cleaned_data["old_password"]
        if not knows_password(self.request, password):
            raise forms.ValidationError("This is not your current password.", code="password_incorrect")
        return password


class NewPassword(Chosen, SetPassword):
    """The new password, twice, of somebody who came by a link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.word()


class ForgottenPassword(Styled, PasswordResetForm):
    """The address to which a link is sent, where somebody has it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = "E-mail address"
        self.style()

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send the link, not too often to the same person. The answer does not wait for it."""
        _subject, _text, context, _sender, address = args[:5]
        if cache.add(f"password-reset:{context['user'].pk}", 1, RESET_EVERY_SECONDS):
            send_soon(compose(address, "Reset your password", "mail/reset.txt", context))
