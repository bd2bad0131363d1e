"""The names of those who acted, for people to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db.models import Q

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser
    from django.db.models import QuerySet


def called(user: User) -> str:
    """The first name; the user name where there is none."""
    return user.first_name or user.get_username()


def names_of(actors: Iterable[str], reader: User | AnonymousUser) -> dict[str, str]:
    """What each actor is called towards this reader, who is "you"."""
    wanted = set(actors)
    ids = [int(number) for kind, _, number in (actor.partition(":") for actor in wanted) if kind == "user"]
    names = {f"user:{user.pk}": called(user) for user in User.objects.filter(pk__in=ids)} if ids else {}
    names[f"user:{reader.pk}"] = "you"
    return {actor: names.get(actor) or _other(actor) for actor in wanted}


def _other(actor: str) -> str:
    kind, _, number = actor.partition(":")
    return {"user": f"user {number}", "rule": f"rule {number}", "grant": f"grant {number}"}.get(kind, "the site")


def deciders(owner: User, but: Iterable[int] = ()) -> QuerySet[User]:
    """Who may decide a call of this owner in the admin: staff with the permission, for their own calls or others'.

    `but`: those who may not let it run, by primary key.
    """
    backend = "django.contrib.auth.backends.ModelBackend"
    others = User.objects.with_perm("conversations.decide_approval", backend=backend).exclude(pk=owner.pk)
    own = User.objects.with_perm("conversations.decide_own_approval", backend=backend).filter(pk=owner.pk)
    may = Q(pk__in=others.values("pk")) | Q(pk__in=own.values("pk"))
    return User.objects.filter(may, is_staff=True, is_active=True).exclude(pk__in=but).order_by("pk")
