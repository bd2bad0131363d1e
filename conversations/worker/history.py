"""The earlier turns of a conversation, as the engine is told of them. A turn reads as many as it needs.

What a turn that has ended encodes to stays in memory until something is erased or redacted: nothing else changes it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from django.db.models import QuerySet

from agents.engine.interfaces.services import EncodedTurn, PastTurn
from agents.engine.root import WORKFLOW
from conversations.database.erasable_cache import ErasableCache, annotate_removed
from conversations.files.uploads import attached
from conversations.models import Output, Prompt

CACHE_BYTES = 32_000_000
"""The maximum size of what is kept, in each drain."""
ENTRY_BYTES = 1_000_000
"""The maximum size of what one turn encodes to. Larger ones are encoded each time, rather than push out all others."""
OVERHEAD_BYTES = 1_000
"""What an entry takes besides its bytes and ids: its key, its sets, and its place in the dictionary."""


def size_of(turn: EncodedTurn) -> int:
    """Return the bytes that this takes in memory."""
    return len(turn.chunk) + sum(map(sys.getsizeof, turn.ids | turn.taken)) + OVERHEAD_BYTES


encoded_turns = ErasableCache[EncodedTurn](CACHE_BYTES, ENTRY_BYTES, size_of)
"""What turns that have ended encode to, in this process."""


def past_turns(
    conversation: int, prompt: int, most: int | None = None, skip: int = 0, encoding: str = ""
) -> list[PastTurn]:
    """Return the turns that ran before this one, oldest first: of those before the newest `skip`, the newest `most`.

    Of those whose encoding is kept under the name `encoding`, nothing else is read.
    """
    newest = _ran(conversation, prompt).order_by("-ended_at", "-pk").values_list("pk", "ended_at")
    page = newest[skip:] if most is None else newest[skip : skip + most]
    ended: list[Any] = list(annotate_removed(page))[::-1]
    if ended:
        encoded_turns.keep_up(ended[0][2])
    keys = {pk: f"{pk} {ended_at} {encoding}".encode() for pk, ended_at, _ in ended}
    kept = {pk: found for pk, key in keys.items() if encoding and (found := encoded_turns.get(key))}
    turns = _read([pk for pk in keys if pk not in kept])
    turns |= {pk: PastTurn(pk, None, (), encoded=encoded) for pk, encoded in kept.items()}
    return [
        replace(turns[pk], keep=partial(encoded_turns.add, keys[pk], removed=removed))
        for pk, _, removed in ended
        if pk in turns  # it may have been erased meanwhile
    ]


def tools_used(conversation: int, prompt: int) -> set[str]:
    """Return the names of the tools that the turns before this one called."""
    called = Output.objects.filter(conversation=conversation, type="tool").exclude(prompt=prompt)
    return set(called.order_by().values_list("tool", flat=True).distinct())


def _read(pks: Collection[int]) -> dict[int, PastTurn]:
    """Return these turns with all that they are made of."""
    prompts = list(Prompt.objects.filter(pk__in=pks)) if pks else []
    outputs: dict[int, list[Any]] = {}
    for row in Output.objects.of(*prompts).order_by("prompt_id", "position"):
        outputs.setdefault(row.prompt_id, []).append(row.entry())
    given = attached(prompts)
    return {
        prompt.pk: PastTurn(
            prompt.pk,
            None if prompt.continues_id else prompt.input,
            outputs.get(prompt.pk, []),
            given.get(prompt.pk, ()),
            program=prompt.policy.startswith(WORKFLOW),
            continues=prompt.continues_id is not None,
            quotes=prompt.from_client.get("quotes", ()),
            reminder=prompt.reminder,
        )
        for prompt in prompts
    }


def _ran(conversation: int, prompt: int) -> QuerySet[Prompt]:
    """Return the turns that ended before this one. One that was stopped while it was queued (fence 0) said nothing."""
    return Prompt.objects.filter(conversation_id=conversation, fence__gt=0).exclude(pk=prompt).ended()
