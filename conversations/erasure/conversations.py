"""Erasing a conversation: the one way by which steps leave the database, and the trace that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from agents.engine.secrets import hide
from conversations.files.workspaces import clear, root
from conversations.ledger.claims import is_held
from conversations.models import Conversation, Erasure, File, Output, Prompt, Redaction, Snapshot, Step
from conversations.models.step import Told
from conversations.prompts.listing import tell

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models.fields.files import FieldFile


AT_ONCE = 500
"""Workspaces that are looked up by one query: databases take only so many values."""
REASON_MOST = 500
"""Characters of the reason for which a conversation is deleted, as people and programs give it."""


class TurnRuns(Exception):
    """A worker is at a turn of this conversation: stop the turn, and erase when it has ended."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def erase(conversation: Conversation, by: User, reason: str = "") -> Erasure:
    """Delete a conversation with all that was said, done and made in it; what stays is who did it, when and why.

    What models were told goes where no other conversation was told the same; files and the workspace once all that is
    committed. Raises TurnRuns while a worker holds a turn of it, Conversation.DoesNotExist.
    """
    with transaction.atomic():
        locked = Conversation.objects.select_for_update(of=("self",)).get(pk=conversation.pk)
        if any(is_held(prompt) for prompt in locked.prompts.values_list("pk", flat=True)):
            raise TurnRuns
        erasure = Erasure.objects.create(  # first: it is what makes the ledger's triggers let go
            conversation_id=locked.pk,
            erased_by=by.get_username(),
            reason=hide(reason),
            steps=locked.seq,
            head=locked.head,
        )
        contents = [file.content for file in locked.files.all()]
        starts = Step.objects.filter(conversation=locked, type="action_start", payload__contains='"snapshot":"')
        told = set(starts.values_list(Told("payload"), flat=True))
        Output.objects.filter(conversation=locked).delete()
        QuerySet(Step).filter(conversation=locked).delete()  # a plain QuerySet: the model's own refuses
        File.objects.filter(conversation=locked).delete()
        Prompt.objects.filter(conversation=locked).update(continues=None, repeats=None)
        Prompt.objects.filter(conversation=locked).delete()
        tell(locked.pk, locked.owner_id)
        locked.delete()
        forget_snapshots(told)
        transaction.on_commit(partial(_remove, contents, conversation.pk))
    return erasure


def forget_snapshots(names: Collection[str]) -> None:
    """Delete those of these that no step names any more, but for steps that were redacted. The last of a transaction:

    a record that finds its snapshot there takes no lock on it, so on PostgreSQL all that are under way are waited for,
    and others wait until this is committed.
    """
    if names and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {Snapshot._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")
    taken_out = Redaction.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("seq"))
    for name in names:
        told = Step.objects.alias(told=Told("payload")).filter(type="action_start", told=name)
        if not told.exclude(Exists(taken_out)).exists():
            Snapshot.objects.filter(pk=name).delete()


def _remove(contents: list[FieldFile], conversation_id: int) -> None:
    for content in contents:
        content.delete(save=False)
    clear(conversation_id)


def sweep(alive: Callable[[], object] = lambda: None) -> int:
    """Remove workspaces that an erasure left behind, because its process was killed meanwhile or a tool wrote on.

    Returns how many. `alive` is called again and again.
    """
    swept, folders = 0, [int(folder.name) for folder in root().iterdir() if folder.name.isdecimal()]
    for first in range(0, len(folders), AT_ONCE):
        some = folders[first : first + AT_ONCE]
        erased = set(Erasure.objects.filter(conversation_id__in=some).values_list("conversation_id", flat=True))
        there = Conversation.objects.filter(pk__in=erased).values_list("pk", flat=True)  # ids come anew
        for conversation_id in erased - set(there):
            alive()
            clear(conversation_id)
            swept += 1
        alive()
    return swept
