"""Users and groups. Users are deactivated or erased, never deleted, because their decisions stay on record.

What a person may do is for superusers alone to change; otherwise whoever may change people could make themselves
superuser. Whoever may change a person can sign in as them, with a password or an e-mail address of their own choice:
see `may_act_as`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.accounts.groups import MEMBERS
from conversations.admin.base import ListPages, person
from conversations.admin.confirm import Question, confirm
from conversations.approvals.permissions import DECIDE_OTHERS
from conversations.erasure.conversations import TurnRuns
from conversations.erasure.people import LastAdministrator, erase_user
from conversations.models import Quota

if TYPE_CHECKING:  # as in base.py
    UserPages = DjangoUserAdmin[User]
    Inline = admin.StackedInline[Quota, User]
else:
    from unfold.admin import StackedInline as Inline

    UserPages = DjangoUserAdmin

ERASING = (
    "Their name, e-mail address, password, sessions, keys and settings are deleted. This cannot be undone.",
    "Their decisions for others and their usage figures stay, without their name.",
    "Earlier backups still contain everything.",
)

RIGHTS = ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")
"""The fields of a user that say what they may do."""

admin.site.unregister(User)
admin.site.unregister(Group)


class QuotaInline(Inline):
    """A person's quota."""

    model = Quota
    verbose_name = verbose_name_plural = "Quota"


@admin.register(User)
class UserAdmin(UserPages, ListPages):
    """People, what they may do, and how much."""

    inlines = (QuotaInline,)

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    ordering = ListPages.ordering
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser", "last_login")

    actions = ("erase_one",)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Add what says what a person may do, unless it is a superuser who looks."""
        fixed = super().get_readonly_fields(request, obj)
        return tuple(fixed) if request.user.is_superuser else (*fixed, *RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Whether the person may change people, and this one: themselves, or somebody they may act as.

        The page that sets a password asks this too.
        """
        allowed, staff = super().has_change_permission(request, obj), person(request)
        return allowed and (obj is None or obj == staff or may_act_as(staff, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether the person may add people, whose first password they know."""
        return super().has_add_permission(request) and may_act_as(person(request), None)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return False: people are never deleted."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Add the page on which a person is erased."""
        view = self.admin_site.admin_view(self.erase)
        return [path("<int:pk>/erase/", view, name="auth_user_erase"), *super().get_urls()]

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Whether the person is a superuser: erasing somebody deletes all their conversations."""
        return request.user.is_active and request.user.is_superuser

    @admin.action(description="Erase this person…", permissions=["erase"])
    def erase_one(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        """Redirect to the confirmation page, for one person."""
        found = list(users[:2])
        if len(found) == 1:
            return redirect("admin:auth_user_erase", found[0].pk)
        messages.error(request, "Select one person at a time.")
        return None

    def erase(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for a reason, and erase a person with all their conversations."""
        if not self.has_erase_permission(request):
            raise PermissionDenied
        user = get_object_or_404(User, pk=pk)
        name, count = user.get_username(), user.conversations.count()

        def do(reason: str) -> str:
            erased = erase_user(user, person(request), reason)
            self.log_change(request, user, "Erased.")
            return f"Erased {name}, with {erased} conversation{'' if erased == 1 else 's'}."

        question = Question(
            f"Erase {name}",
            f"Erase {name} and {count} conversation{'' if count == 1 else 's'} with everything in them?",
            ERASING,
            "Erase",
            reverse("admin:auth_user_changelist"),
            do,
            (TurnRuns, LastAdministrator),
        )
        return confirm(request, self, question)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ListPages):
    """Groups of people, and their permissions. Only superusers change them: whoever else could may be in one."""

    ordering = ListPages.ordering

    def _superusers(self, request: HttpRequest, *args: Any, **named: Any) -> bool:
        """Whether the person is a superuser."""
        return request.user.is_active and request.user.is_superuser

    has_add_permission = has_change_permission = has_delete_permission = _superusers


def may_act_as(staff: User, user: User | None) -> bool:
    """Whether a member of staff may choose how another person, or a new one (None), signs in.

    Superusers may. Others may not for staff, nor for anybody who may do what they may not, now or once activated. Who
    approves others' calls may for nobody: they could ask as one person and approve as the other, past the four eyes.
    """
    if staff.is_superuser:
        return True
    if staff.has_perm(DECIDE_OTHERS) or (user and (user.is_staff or user.is_superuser)):
        return False
    whose = Q(user=user) | Q(group__user=user) if user else Q(group__name=MEMBERS)
    rights = Permission.objects.filter(whose).values_list("content_type__app_label", "codename")
    return {f"{app}.{name}" for app, name in rights} <= staff.get_all_permissions()
