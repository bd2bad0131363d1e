"""Keeping memories: saving, changing, pinning, forgetting and finding them, each function for one person alone.

Tools and the account page both come through here. Every function takes the id of the person first, and none reads or
changes a row of anybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.engine.ledger import digest, valid_text
from agents.engine.limits import BYTES_A_TOKEN
from agents.engine.secrets import hide
from agents.models import Memory, MemoryStanding
from agents.models.memory import memories_of
from agents.plugins.memory.telling import is_told_whole
from agents.search import index

FOUND_MOST = 8
"""Memories that the agent is told of because of what was said, besides the pinned ones."""
LINE_USUAL = 24
"""Bytes of a short memory in what the agent is told: of pinned ones, as many are read as would then fit."""


class CannotKeep(ValueError):
    """A memory that is not kept. Its text says why, and what to do."""


class HasChanged(ValueError):
    """A memory does not say any more what somebody was shown of it."""


@dataclass(frozen=True)
class Saved:
    """A memory, and whether it is `new`; else the same text was kept already, or the same call saved it before.

    `pinned_now`: it was there, and is pinned from now on, because that was asked for.
    """

    memory: Memory
    new: bool
    pinned_now: bool = False


@dataclass(frozen=True)
class Recalled:
    """What the agent is told now: the pinned memories, the newest first, then those that were `found`, best first.

    `key` is a digest of the turn and of the version of the memories, and `found` has the ids: the turn searches again
    once the key is another. `more`: there are pinned ones that were not read, since there is no room for so many.
    """

    key: str
    found: list[int]
    memories: list[Memory]
    more: bool = False


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
    """Switch memory on or off for a person. What is kept stays.

    Raises CannotKeep for somebody who may not use the site any more.
    """
    with transaction.atomic():
        _hold(user)
        MemoryStanding.objects.update_or_create(user_id=user, defaults={"is_on": on})


# Keeping


def save(user: int, text: str, *, pinned: bool = False, prompt: int | None = None, key: str = "") -> Saved:
    """Keep a text of this person. The same text is kept once, and so is what the same call (`key`) saves again.

    A text that is there already is pinned, if that is asked for. `prompt`: the turn that it was said in. A call whose
    worker died before its result was recorded runs again: if its person forgot meanwhile what it had saved, that is
    saved anew, because the key went with it.
    Raises CannotKeep for a text that is empty or too long, if the person keeps as many as they may, and for somebody
    who may not use the site any more.
    """
    text = _checked(text)
    with transaction.atomic():
        _hold(user)
        mine = of_person(user)
        if key and (there := mine.filter(key=key).first()):
            return Saved(there, new=False)
        if there := mine.filter(text=text).first():
            pins = pinned and not there.pinned
            return Saved(_pin(there, True) if pins else there, new=False, pinned_now=pins)
        if mine.count() >= Memory.MOST:
            raise CannotKeep(f"There are {Memory.MOST:,} memories, which is the most. Forget some of them first.")
        made = Memory.objects.create(user_id=user, text=text, pinned=pinned, prompt=prompt, key=key)
        _count_change(user)
    return Saved(made, new=True)


def change(user: int, pk: int, text: str, *, pinned: bool) -> Memory:
    """Give a memory of this person another text, pinned or not.

    Raises Memory.DoesNotExist if they have no such one (any more), and CannotKeep for a text that is empty, too long,
    or the one of another memory, and for somebody who may not use the site any more.
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
        return _pin(of_person(user).get(pk=pk), pinned)


def forget(user: int, pk: int, shown: str | None = None) -> bool:
    """Forget a memory of this person. Returns False, having done nothing, if they have no such one.

    No later round is told of it. What was told, said or found before stands in its conversation, which goes on with it.
    `shown`: what the person was shown of it. Raises HasChanged if it says something else by now.
    """
    with transaction.atomic():
        _lock(user)
        found = of_person(user).filter(pk=pk).first()
        if found is not None:
            if shown not in (None, found.text):
                raise HasChanged
            found.delete()
            _count_change(user)
    return found is not None


def person_goes(instance: Any, **kwargs: Any) -> None:
    """Remove all words of a person's memories, who is about to be deleted or erased. A receiver of `pre_delete`.

    Memory by memory, that takes seconds for a thousand.
    """
    with transaction.atomic():
        _lock(instance.pk)
        index.drop_all(memories_of(instance.pk))


def remark(memory: Memory) -> str:
    """Return what whoever saved this should know: " ..." if the agent can never be told all of it, else ""."""
    whole = not is_offered() or is_told_whole(memory, settings.AGENTSITE_MEMORY_TOKENS)
    return "" if whole else " It is longer than there is room for: the agent is told how it begins."


def _lock(user: int) -> bool:
    """Lock the person's row until the transaction ends, and return whether they may use the site.

    Whoever writes memories of somebody does this first, so that none of two misses what the other does.
    """
    people = get_user_model().objects.select_for_update(no_key=True)
    return people.filter(pk=user).values_list("is_active", flat=True).first() is True


def _hold(user: int) -> None:
    """Lock the person's row. Raises CannotKeep for somebody who may not use the site any more."""
    if not _lock(user):
        raise CannotKeep("This person may no longer use the site.")


def _pin(memory: Memory, pinned: bool) -> Memory:
    memory.pinned = pinned
    memory.save(update_fields=["pinned", "updated_at"])
    _count_change(memory.user_id)
    return memory


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
    ids = _best(user, text, most)
    found = of_person(user).in_bulk(ids)
    return [found[pk] for pk in ids if pk in found]


def recall(user: int, subject: str | None, key: str = "", found: Sequence[int] = (), turn: int = 0) -> Recalled | None:
    """Return what the agent is told now in a turn about this subject; None if memory is off, or nothing is kept.

    `key` and `found` are those of the last time. It searches only if the turn or the memories are others since then,
    and never without a subject. Texts are always read anew, so what was forgotten meanwhile is not among them.
    """
    standing = MemoryStanding.objects.filter(user=user).first()
    if not is_offered() or standing is None or not standing.is_on:
        return None
    mine = of_person(user)
    if subject is not None and key != (now := digest([turn, standing.version])):
        if not mine.exists():
            return None  # and nothing of it is put on record
        key, found = now, _found(user, subject)
    most = settings.AGENTSITE_MEMORY_TOKENS * BYTES_A_TOKEN // LINE_USUAL
    newest = mine.filter(pinned=True).values("pk")[: most + 1]
    rows = list(mine.filter(Q(pk__in=newest) | Q(pk__in=found)))  # in one statement: each round asks
    pinned = [row for row in rows if row.pinned]
    others = sorted((row for row in rows if not row.pinned), key=lambda row: found.index(row.pk))
    return Recalled(key, list(found), pinned[:most] + others, more=len(pinned) > most)


def _found(user: int, subject: str) -> list[int]:
    """Return the ids of those that fit best, of the others: pinned ones are told anyway, and take up no place here."""
    ids = _best(user, subject, Memory.MOST)
    others = set(of_person(user).filter(pk__in=ids, pinned=False).values_list("pk", flat=True))
    return [pk for pk in ids if pk in others][:FOUND_MOST]


def _best(user: int, text: str, most: int) -> list[int]:
    """Return the ids of those that fit best. Memories are a sentence or two, so one word that they share is enough."""
    return [match.row for match in index.best(memories_of(user), text, most, one_is_enough=True)]
