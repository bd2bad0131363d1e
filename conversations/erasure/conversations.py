"""Erasing a conversation: the only way that steps leave the database, and the trace that remains."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.engine.secrets import hide
from conversations.database.hints import hint_everything
from conversations.files.workspaces import clear, root
from conversations.ledger.claims import any_held
from conversations.ledger.secrets import secrets_in
from conversations.models import (
    Conversation,
    ConversationKind,
    Erasure,
    File,
    Output,
    Payload,
    Prompt,
    Redaction,
    RunSecret,
    Snapshot,
    Step,
)
from conversations.models.step import Told, snapshots_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models.fields.files import FieldFile


REASON_MOST = 500
"""Maximum length of the reason for an erasure, in characters."""
KEPT_HIDDEN = timedelta(days=7)
"""How long a hidden conversation is kept after its last turn: nobody has a page from which to erase it."""
BY_SITE = "the site"
"""Who erased a conversation that nobody was asked about. No username has a blank."""


class TurnRuns(Exception):
    """A turn of this conversation is running. Stop the turn first, and erase the conversation when it has ended."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def erase(conversation: Conversation, by: User | None, reason: str = "") -> Erasure:
    """Delete a conversation with everything in it. A record of who did it, when and why remains. `by` None: the site.

    Snapshots that no other conversation uses are deleted too; files and the workspace go after the commit.
    Raises TurnRuns while a worker holds one of its turns, and Conversation.DoesNotExist.
    """
    with transaction.atomic():
        locked = Conversation.objects.select_for_update(of=("self",)).get(pk=conversation.pk)
        if any_held(locked.prompts.all()):
            raise TurnRuns
        with secrets_in(locked).hidden():
            told = hide(reason)
        erasure = Erasure.objects.create(  # first: the ledger's triggers allow the deletion because of it
            conversation_id=locked.pk,
            erased_by=by.get_username() if by else BY_SITE,
            reason=told,
            steps=locked.seq,
            head=locked.head,
        )
        contents = [file.content for file in locked.files.all()]
        snapshots = set(snapshots_of(locked))
        Output.objects.filter(conversation=locked).delete()
        QuerySet(Step).filter(conversation=locked).delete()  # a plain QuerySet: the model's own refuses
        File.objects.filter(conversation=locked).delete()
        RunSecret.objects.filter(conversation=locked).delete()
        Payload.objects.filter(firing__prompt__conversation=locked).delete()
        Prompt.objects.filter(conversation=locked).update(continues=None, repeats=None)
        Prompt.objects.filter(conversation=locked).delete()
        hint_everything()  # of what is gone, nobody could read whose it was
        locked.delete()
        delete_unused_snapshots(snapshots)
        transaction.on_commit(partial(_remove, contents, conversation.pk))
    return erasure


def delete_unused_snapshots(names: Collection[str]) -> None:
    """Delete the snapshots that no step names any more, other than redacted steps.

    Call it last in a transaction: a record that finds its snapshot stored takes no lock on it, so on PostgreSQL this
    waits for all records that are being written, and others wait until this is committed.
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
    """Remove workspaces that an erasure left behind because its process was killed or a tool was still writing.

    Returns how many. `alive` is called repeatedly.
    """
    left = left_behind()
    for conversation_id in left:
        alive()
        clear(conversation_id)
    return len(left)


def sweep_hidden(alive: Callable[[], object] = lambda: None) -> int:
    """Erase the hidden conversations whose last turn ended KEPT_HIDDEN ago. Returns how many.

    `alive` is called repeatedly.
    """
    recent = Prompt.objects.filter(conversation=OuterRef("pk")).exclude(ended_at__lt=timezone.now() - KEPT_HIDDEN)
    erased = 0
    for conversation in Conversation.objects.filter(~Exists(recent), kind=ConversationKind.HIDDEN).iterator():
        alive()
        with suppress(TurnRuns, Conversation.DoesNotExist):  # it goes the next night, or went with its owner just now
            erase(conversation, None, "A hidden conversation, some time after it had ended.")
            erased += 1
    return erased


def left_behind() -> set[int]:
    """Return the ids of erased conversations whose workspace is still there."""
    folders = {int(folder.name) for folder in root().iterdir() if folder.name.isdecimal()}
    used = Conversation.objects.filter(pk=OuterRef("conversation_id"))  # ids may be used again
    erased = Erasure.objects.exclude(Exists(used))
    return folders & set(erased.values_list("conversation_id", flat=True))
