"""Display names: what people and other actors are called."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from agents.engine import actors
from agents.engine.actors import Actor, Kind
from conversations.models import Grant

Asked = tuple[int, frozenset[int]]
"""Whose call it is, and who may not approve it, by primary keys."""


def display_name(user: User) -> str:
    """Return the user's first name, or the user name if there is none."""
    return user.first_name or user.get_username()


def names_of(wanted: Iterable[str], reader: User | AnonymousUser) -> dict[str, str]:
    """Return the name of each actor as shown to this reader, who is called "you"."""
    wanted = set(wanted)
    parsed = [Actor.parse(actor) for actor in wanted]
    ids = [actor.pk for actor in parsed if actor.kind == Kind.USER and actor.pk is not None]
    names = {actors.user(user.pk): display_name(user) for user in User.objects.filter(pk__in=ids)} if ids else {}
    names |= _of_grants([actor.pk for actor in parsed if actor.kind == Kind.GRANT and actor.pk is not None], reader)
    if reader.pk is not None:
        names[actors.user(reader.pk)] = "you"
    return {actor: names.get(actor) or _other(actor) for actor in wanted}


def _of_grants(ids: Iterable[int], reader: User | AnonymousUser) -> dict[str, str]:
    """Return what grants are called as those who decided: whose they are."""
    found = Grant.objects.filter(pk__in=ids).select_related("user") if ids else ()
    return {
        grant.actor: "your grant" if grant.user_id == reader.pk else f"a grant of {display_name(grant.user)}"
        for grant in found
    }


def _other(text: str) -> str:
    actor = Actor.parse(text)
    return f"{actor.kind} {actor.id}" if actor.kind in (Kind.USER, Kind.RULE, Kind.GRANT) else "the site"


def deciders(owner: User, but: Iterable[int] = ()) -> QuerySet[User]:
    """Return who may decide this owner's calls: those with the permission for their own or others' calls.

    `but` leaves out users by primary key: those who may not approve the call.
    """
    backend = "django.contrib.auth.backends.ModelBackend"
    others = User.objects.with_perm("conversations.decide_approval", backend=backend).exclude(pk=owner.pk)
    own = User.objects.with_perm("conversations.decide_own_approval", backend=backend).filter(pk=owner.pk)
    may = Q(pk__in=others.values("pk")) | Q(pk__in=own.values("pk"))
    return User.objects.filter(may, is_active=True).exclude(pk__in=but).order_by("pk")


def first_deciders(asked: Iterable[Asked], most: int) -> dict[Asked, list[User]]:
    """Return the first `most` of the `deciders` of each of these, in two queries for all of them together."""
    asked = set(asked)
    backend = "django.contrib.auth.backends.ModelBackend"
    loaded = most + 1 + max((len(but) for _, but in asked), default=0)  # the owner and `but` are left out of these
    others = list(User.objects.with_perm("conversations.decide_approval", backend=backend).order_by("pk")[:loaded])
    own = User.objects.with_perm("conversations.decide_own_approval", backend=backend)
    owners = own.in_bulk({owner for owner, _ in asked})
    found = {}
    for owner, but in asked:
        may = {user.pk: user for user in others if user.pk != owner} | {
            pk: user for pk, user in owners.items() if pk == owner
        }
        found[owner, but] = [may[pk] for pk in sorted(may.keys() - but)[:most]]
    return found


def administrators() -> QuerySet[User]:
    """Return who administers the site: active superusers."""
    return User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
