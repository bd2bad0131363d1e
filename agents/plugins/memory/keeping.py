"""Keeping memories: saving, changing, pinning, forgetting and finding them, each function for one person alone.

Tools and the account page both come through here. Every function takes the id of the person first, and none reads or
changes a row of anybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from agents.engine.ledger import digest, valid_text
from agents.engine.secrets import hide
from agents.models import Memory, MemoryOff
from agents.models.memory import memories_of
from agents.search import index

FOUND_MOST = 8
"""Memories that the agent is told of because of what was said, besides the pinned ones."""


class CannotKeep(ValueError):
    """A memory that is not kept. Its text says why, and what to do."""


@dataclass(frozen=True)
class Saved:
    """A memory, and whether it is `new`; else the same text was kept already, or the same call saved it before."""

    memory: Memory
    new: bool


@dataclass(frozen=True)
class Standing:
    """Whether the agent of a person may use memories, and the version of those there are: "" if there are none."""

    on: bool
    version: str = ""


def standing(user: int) -> Standing:
    """Return how the memories of this person stand. Their version changes with each of them."""
    if not is_on(user):
        return Standing(on=False)
    there = of_person(user).aggregate(count=Count("pk"), newest=Max("pk"), changed=Max("updated_at"))
    if not there["count"]:
        return Standing(on=True)
    return Standing(True, digest([there["count"], there["newest"], there["changed"].isoformat()]))


def is_on(user: int) -> bool:
    """Whether the agent of this person may use memories: neither the person nor the site has switched them off."""
    return is_offered() and not MemoryOff.objects.filter(user=user).exists()


def is_offered() -> bool:
    """Whether the site has memories at all."""
    return bool(settings.AGENTSITE_MEMORY_TOKENS)


def switch(user: int, on: bool) -> None:
    """Switch memory on or off for a person. What is kept stays."""
    if on:
        MemoryOff.objects.filter(user=user).delete()
    else:
        MemoryOff.objects.get_or_create(user_id=user)


def of_person(user: int) -> QuerySet[Memory]:
    """Return the memories of a person: the pinned ones first, then the newest."""
    return Memory.objects.filter(user=user)


def same_as(user: int, text: str) -> Memory | None:
    """Return the memory of this person that says exactly this, if there is one."""
    return of_person(user).filter(text=_cleaned(text)).first()


def save(user: int, text: str, *, pinned: bool = False, prompt: int | None = None, key: str = "") -> Saved:
    """Keep a text of this person. The same text is kept once, and so is what the same call (`key`) saves again.

    `prompt`: the turn that it was said in. Raises CannotKeep for a text that is empty or too long, if the person keeps
    as many as they may, and for somebody who may not use the site any more.
    """
    text = _checked(text)
    with transaction.atomic():
        _hold(user)
        again = Q(text=text) | (Q(key=key) if key else Q())
        if there := of_person(user).filter(again).first():
            return Saved(there, new=False)
        if of_person(user).count() >= Memory.MOST:
            raise CannotKeep(f"There are {Memory.MOST:,} memories, which is the most. Forget some of them first.")
        made = Memory.objects.create(user_id=user, text=text, pinned=pinned, prompt=prompt, key=key)
    return Saved(made, new=True)


def change(user: int, pk: int, text: str, *, pinned: bool) -> Memory:
    """Give a memory of this person another text, pinned or not.

    Raises Memory.DoesNotExist if they have no such one, and CannotKeep for a text that is empty, too long, or the one
    of another memory.
    """
    text = _checked(text)
    with transaction.atomic():
        _hold(user)
        found = of_person(user).get(pk=pk)
        if of_person(user).filter(text=text).exclude(pk=pk).exists():
            raise CannotKeep("Another memory says exactly this.")
        found.text, found.pinned = text, pinned
        found.save(update_fields=["text", "pinned", "updated_at"])
    return found


def pin(user: int, pk: int, pinned: bool) -> Memory:
    """Pin a memory of this person, or no longer. Raises Memory.DoesNotExist if they have no such one."""
    with transaction.atomic():
        found = of_person(user).select_for_update().get(pk=pk)
        found.pinned = pinned
        found.save(update_fields=["pinned", "updated_at"])
    return found


def forget(user: int, pk: int) -> Memory | None:
    """Forget a memory of this person and return what it was; None if they have no such one."""
    with transaction.atomic():
        found = of_person(user).select_for_update().filter(pk=pk).first()
        if found is not None:
            Memory.objects.get(pk=pk).delete()
    return found


def find(user: int, text: str, most: int = FOUND_MOST) -> list[Memory]:
    """Return the memories of this person that fit a text best, the best first. Nothing fits a text without words."""
    ids = [match.row for match in index.best(memories_of(user), text, most)]
    found = of_person(user).in_bulk(ids)
    return [found[pk] for pk in ids if pk in found]


def told(user: int, found: Sequence[int]) -> list[Memory]:
    """Return what the agent is told now: the pinned memories, the newest first, then the found ones in their order.

    Those that were forgotten since they were found are not among them, and none is once memory was switched off.
    """
    off = MemoryOff.objects.filter(user=OuterRef("user"))
    rows = of_person(user).filter(Q(pinned=True) | Q(pk__in=found)).exclude(Exists(off))
    place = {pk: number for number, pk in enumerate(found)}
    return sorted(rows, key=lambda row: (not row.pinned, -row.pk if row.pinned else place[row.pk]))


def _hold(user: int) -> None:
    """Lock the person's row until the transaction ends, so that none of two savers misses what the other saves."""
    people = get_user_model().objects.select_for_update(no_key=True)
    if not people.filter(pk=user, is_active=True).exists():
        raise CannotKeep("This person may no longer use the site.")


def _checked(text: str) -> str:
    text = _cleaned(text)
    if not text:
        raise CannotKeep("Write what is to be remembered.")
    if len(text) > Memory.TEXT_MOST:
        raise CannotKeep(f"A memory has at most {Memory.TEXT_MOST:,} characters, and this has {len(text):,}.")
    return text


def _cleaned(text: str) -> str:
    return hide(valid_text(text)).replace("\r\n", "\n").strip()  # models are told of it, and no secret of the site is
