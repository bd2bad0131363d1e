"""Users and groups. A user who leaves is deactivated: what they decided stays theirs, so nobody is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.admin.base import Listed

if TYPE_CHECKING:  # as in base.py
    UserPages = DjangoUserAdmin[User]
else:
    UserPages = DjangoUserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(UserPages, Listed):
    """People, and what they may do."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser", "last_login")

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody is deleted."""
        return False


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, Listed):
    """Groups of people, and what all of them may do."""
