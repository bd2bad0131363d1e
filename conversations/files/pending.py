"""Pending files: uploaded by a person before the run that takes them starts, and named by a token until then."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from secrets import token_urlsafe

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from conversations.database.ids import row_id
from conversations.files import storage
from conversations.files.uploads import BadFile, Upload, storing
from conversations.models import File, PendingFile
from conversations.usage.storage import OverStorage, check

logger = logging.getLogger(__name__)
KEPT = timedelta(days=1)
"""How long a file waits for a run, at least: the nightly sweep removes older ones."""
PENDING_MOST = 100
"""Pending files of one person."""
EARLIER = "file:"
"""What names a file that the person has already, in place of a token; its id follows."""


def keep(owner: User, upload: Upload, token: str = "") -> PendingFile:
    """Store a file for a run that this person may start later. Raises BadFile, also if they have no space left.

    `token`: what shall name it, by default a new one. If it names a pending file already, that one is returned.
    """
    if token and (there := named(owner, token)):
        if storage.exists(there):
            return there
        _remove(there)
    if not upload.size:
        raise BadFile(f"{upload.name} is empty. Choose a file that has something in it.")
    about = {"name": upload.name, "media_type": upload.media_type, "sha256": upload.sha256}
    row = PendingFile(owner=owner, token=token or token_urlsafe(24), size=upload.size, **about)
    try:
        _check(owner, row)  # once more below, where no other file of theirs is stored at the same moment
        with storing(upload.name):
            storage.store(row, upload.content)
        there = _inserted(owner, row)
    except BaseException:
        if row.content.name:
            row.content.delete(save=False)
        raise
    if there.pk != row.pk:
        row.content.delete(save=False)
    return there


def _inserted(owner: User, row: PendingFile) -> PendingFile:
    """Return this row, inserted; or the one with its token that was sent at the same moment."""
    with transaction.atomic():
        if not User.objects.select_for_update(no_key=True).get(pk=owner.pk).is_active:
            raise BadFile("This account was deactivated, so nothing was stored.")
        if there := named(owner, row.token):
            return there
        _check(owner, row)
        row.save(force_insert=True)
    return row


def _check(owner: User, row: PendingFile) -> None:
    """Raise BadFile if this person cannot have one more."""
    if PendingFile.objects.filter(owner=owner).count() >= PENDING_MOST:
        raise BadFile(
            f"{row.name} was not stored: {PENDING_MOST} files that you uploaded wait for a run. "
            "Start runs with them, or try again tomorrow, when they are gone."
        )
    try:
        check(owner.pk, row.size)
    except OverStorage as error:
        raise BadFile(f"{row.name} was not stored: {error}.") from error


def find(owner: User, token: str) -> Upload | None:
    """Return the file that this token names, to be given to a run; None if this person has none, or it is gone.

    `file:12` names the file 12 of one of their conversations, which the run gets a copy of.
    """
    if token.startswith(EARLIER):
        pk = row_id(token.removeprefix(EARLIER))
        file = File.objects.visible_to(owner).filter(pk=pk).first() if pk else None
        return _upload(file) if file and storage.exists(file) else None
    row = named(owner, token)
    return _upload(row, pending=row.pk) if row and storage.exists(row) else None


def _upload(row: File | PendingFile, pending: int | None = None) -> Upload:
    return Upload(row.name, row.media_type, row.sha256, row.size, row.content, pending)


def named(owner: User, token: str) -> PendingFile | None:
    """Return the pending file of this person that this token names, if there is one."""
    known = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", token)
    return PendingFile.objects.visible_to(owner).filter(token=token).first() if known else None


def discard(owner: User, token: str) -> bool:
    """Remove a pending file of this person. Returns whether there was one."""
    row = named(owner, token)
    return row is not None and _remove(row)


def discard_all(owner: User) -> None:
    """Remove all pending files of this person."""
    for row in PendingFile.objects.filter(owner=owner):
        _remove(row)


def sweep(alive: Callable[[], object] = lambda: None) -> int:
    """Remove the files that no run has taken for a day; return how many. `alive` is called repeatedly."""
    removed = 0
    for row in PendingFile.objects.filter(created_at__lt=timezone.now() - KEPT).iterator():
        alive()
        removed += _remove(row)
    if removed:
        logger.info("removed %d uploaded files that no run has taken", removed)
    return removed


def _remove(row: PendingFile) -> bool:
    """Remove a file, unless a run takes it at the same moment."""
    with transaction.atomic():
        there = bool(PendingFile.objects.filter(pk=row.pk).delete()[0])
        if there:
            transaction.on_commit(partial(row.content.delete, save=False))
    return there
