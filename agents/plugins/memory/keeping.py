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
from django.db.models import F, Q, QuerySet

from agents.engine.ledger import digest, valid_text
from agents.engine.secrets import hide
from agents.models import Memory, MemoryStanding
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
class Recalled:
    """What the agent is told now: the pinned memories, the newest first, then those that were `found`, best first.

    `key` is a digest of what was searched for and of the version of the memories; `found` has the ids.
    """

    key: str
    found: list[int]
    memories: list[Memory]


def of_person(user: int) -> QuerySet[Memory]:
    """Return the memories of a person: the pinned ones first, then the newest."""
    return Memory.objects.filter(user=user)


# Whether there is memory


def is_offered() -> bool:
    """Whether the site has memory at all."""
    return bool(settings.AGENTSITE_MEMORY_TOKENS)


def is_on(user: int) -> bool:
    """Whether the agent of this person may use memory: neither the person nor the site has switched it off."""
    return is_offered() and not MemoryStanding.objects.filter(user=user, is_on=False).exists()


def has_kept(user: int) -> bool:
    """Whether this person has had memories, or has switched memory off."""
    return MemoryStanding.objects.filter(user=user).exists()


def switch(user: int, on: bool) -> None:
    """Switch memory on or off for a person. What is kept stays."""
    MemoryStanding.objects.update_or_create(user_id=user, defaults={"is_on": on})


# Keeping


def save(user: int, text: str, *, pinned: bool = False, prompt: int | None = None, key: str = "") -> Saved:
    """Keep a text of this person. The same text is kept once, and so is what the same call (`key`) saves again.

    `prompt`: the turn that it was said in. Raises CannotKeep for a text that is empty or too long, if the person keeps
    as many as they may, and for somebody who may not use the site any more.
    """
    text = _checked(text)
    with transaction.atomic():
        _hold(user)
        if there := of_person(user).filter(Q(text=text) | (Q(key=key) if key else Q())).first():
            return Saved(there, new=False)
        if of_person(user).count() >= Memory.MOST:
            raise CannotKeep(f"There are {Memory.MOST:,} memories, which is the most. Forget some of them first.")
        made = Memory.objects.create(user_id=user, text=text, pinned=pinned, prompt=prompt, key=key)
        _count_change(user)
    return Saved(made, new=True)


def change(user: int, pk: int, text: str, *, pinned: bool) -> Memory:
    """Give a memory of this person another text, pinned or not.

    Raises Memory.DoesNotExist if they have no such one, and CannotKeep for a text that is empty, too long, or the one
    of another memory, and for somebody who may not use the site any more.
    """
    text = _checked(text)
    with transaction.atomic():
        _hold(user)
        found = of_person(user).get(pk=pk)
        if of_person(user).filter(text=text).exclude(pk=pk).exists():
            raise CannotKeep("Another memory says exactly this.")
        found.text, found.pinned = text, pinned
        found.save(update_fields=["text", "pinned", "updated_at"])
        _count_change(user)
    return found


def pin(user: int, pk: int, pinned: bool) -> Memory:
    """Pin a memory of this person, or no longer. Raises Memory.DoesNotExist and CannotKeep as `change` does."""
    with transaction.atomic():
        _hold(user)
        found = of_person(user).get(pk=pk)
        found.pinned = pinned
        found.save(update_fields=["pinned", "updated_at"])
        _count_change(user)
    return found


def forget(user: int, pk: int) -> bool:
    """Forget a memory of this person. Returns False, having done nothing, if they have no such one."""
    with transaction.atomic():
        found = of_person(user).select_for_update().filter(pk=pk).first()
        if found is not None:
            found.delete()
            _count_change(user)
    return found is not None


def _hold(user: int) -> None:
    """Lock the person's row until the transaction ends, so that none of two savers misses what the other saves."""
    people = get_user_model().objects.select_for_update(no_key=True)
    if not people.filter(pk=user, is_active=True).exists():
        raise CannotKeep("This person may no longer use the site.")


def _count_change(user: int) -> None:
    """Raise the version of a person's memories, so that their turns search again."""
    MemoryStanding.objects.get_or_create(user_id=user)
    MemoryStanding.objects.filter(user=user).update(version=F("version") + 1)


def _checked(text: str) -> str:
    text = hide(valid_text(text)).replace("\r\n", "\n").strip()  # models are told of it, and no secret of the site is
    if not text:
        raise CannotKeep("Write what is to be remembered.")
    if len(text) > Memory.TEXT_MOST:
        raise CannotKeep(f"A memory has at most {Memory.TEXT_MOST:,} characters, and this has {len(text):,}.")
    return text


# Finding


def find(user: int, text: str, most: int = FOUND_MOST) -> list[Memory]:
    """Return the memories of this person that fit a text best, the best first. Nothing fits a text without words."""
    ids = [match.row for match in index.best(memories_of(user), text, most)]
    found = of_person(user).in_bulk(ids)
    return [found[pk] for pk in ids if pk in found]


def recall(user: int, subject: str | None, key: str = "", found: Sequence[int] = ()) -> Recalled | None:
    """Return what the agent is told now in a turn about this subject; None if memory is off.

    `key` and `found` are those of the last time. It searches only if the subject or the memories are others since then,
    and never without a subject. Texts are always read anew, so what was forgotten meanwhile is not among them.
    """
    standing = MemoryStanding.objects.filter(user=user).first()
    if not is_offered() or standing is None or not standing.is_on:
        return None
    if subject is not None and key != (now := digest([subject, standing.version])):
        key, found = now, [memory.pk for memory in find(user, subject)]
    place = {pk: number for number, pk in enumerate(found)}
    rows = of_person(user).filter(Q(pinned=True) | Q(pk__in=found))
    told = sorted(rows, key=lambda row: (not row.pinned, -row.pk if row.pinned else place[row.pk]))
    return Recalled(key, list(found), told)
