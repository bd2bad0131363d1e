"""Display names: what people and other actors are called."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from agents.engine import actors
from agents.engine.actors import Actor, Kind


def display_name(user: User) -> str:
    """Return the user's first name, or the user name if there is none."""
    return user.first_name or user.get_username()


def names_of(wanted: Iterable[str], reader: User | AnonymousUser) -> dict[str, str]:
    """Return the name of each actor as shown to this reader, who is called "you"."""
    wanted = set(wanted)
    parsed = [Actor.parse(actor) for actor in wanted]
    ids = [actor.pk for actor in parsed if actor.kind == Kind.USER and actor.pk is not None]
    names = {actors.user(user.pk): display_name(user) for user in User.objects.filter(pk__in=ids)} if ids else {}
    if reader.pk is not None:
        names[actors.user(reader.pk)] = "you"
    return {actor: names.get(actor) or _other(actor) for actor in wanted}


def _other(text: str) -> str:
    actor = Actor.parse(text)
    return f"{actor.kind} {actor.id}" if actor.kind in (Kind.USER, Kind.RULE, Kind.GRANT) else "the site"


def deciders(owner: User, but: Iterable[int] = ()) -> QuerySet[User]:
    """Return who may decide this owner's calls in the admin: staff with the permission for their own or others' calls.

    `but` leaves out users by primary key: those who may not approve the call.
    """
    backend = "django.contrib.auth.backends.ModelBackend"
    others = User.objects.with_perm("conversations.decide_approval", backend=backend).exclude(pk=owner.pk)
    own = User.objects.with_perm("conversations.decide_own_approval", backend=backend).filter(pk=owner.pk)
    may = Q(pk__in=others.values("pk")) | Q(pk__in=own.values("pk"))
    return User.objects.filter(may, is_staff=True, is_active=True).exclude(pk__in=but).order_by("pk")


def administrators() -> QuerySet[User]:
    """Return who administers the site: active superusers."""
    return User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
