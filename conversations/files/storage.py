"""Contents of files: stored on disk before their rows, and removed if no row or step refers to them."""

from __future__ import annotations

import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.core.files.base import File as Content
from django.utils import timezone

from conversations.models import File, PendingFile, Step

logger = logging.getLogger(__name__)

GRACE = timedelta(days=1)
"""Anything younger may still get its row, or its row a step. Hours longer than any request or tool takes."""
ORPHANS_MOST = 10
"""Contents without a row that killed workers may leave in a day; or a hundredth of all files, if that is more."""
AT_ONCE = 500
"""Files that are checked between two calls of `alive`."""
_MONTHS = "[0-9][0-9][0-9][0-9]/[0-9][0-9]"
_NAME = re.compile(r"[0-9a-f]{64}(_\w{7})?")
"""A digest, with the suffix that Django adds if the name was taken. Nothing else in the folder is ours to remove."""


def store(row: File | PendingFile, content: Content[bytes]) -> None:
    """Store a row's content under its digest. After this, not even a power failure loses it.

    The row itself is not saved here but afterwards, so that no row is ever without its content.
    """
    row.content.save(row.sha256, content, save=False)
    name = PurePosixPath(str(row.content.name))
    for path in (name, *name.parents):
        _fsync(Path(settings.MEDIA_ROOT) / path)


def exists(row: File | PendingFile) -> bool:
    """Whether the content of this row is in the storage: it is not after a backup without files was put back."""
    return bool(row.content.name) and row.content.storage.exists(str(row.content.name))


def sweep(alive: Callable[[], object] = lambda: None) -> int:
    """Remove files whose record was never committed, and contents without a row; return how many contents.

    A row that no step names is removed once no turn of its conversation is open: only the turn that made it could name
    it. If there are more contents without a row than killed workers leave, all are kept and an error is logged: the
    folder probably belongs to another site. `alive` is called regularly.
    """
    past, there_were = timezone.now() - GRACE, File.objects.count() + PendingFile.objects.count()
    File.objects.filter(pk__in=list(_unrecorded(past, alive))).delete()
    left: list[str] = []
    for month, names in _old(past, alive).items():
        for model in (PendingFile, File):  # in this order: a run may make a File of a pending one meanwhile
            rows = model.objects.filter(content__startswith=f"{month}/")
            names -= set(rows.values_list("content", flat=True))
        left += names
    if left and (not there_were or len(left) > max(ORPHANS_MOST, there_were // 100)):
        logger.error(
            "%d files in %s belong to no row and were kept. Is this the right database for this folder?",
            len(left),
            settings.MEDIA_ROOT,
        )
        return 0
    for name in left:
        (Path(settings.MEDIA_ROOT) / name).unlink(missing_ok=True)
    if left:
        logger.info("removed %d files that belong to no row", len(left))
    return len(left)


def _unrecorded(past: datetime, alive: Callable[[], object]) -> Iterator[int]:
    """Yield the rows of files that a tool made and no step names."""
    made = File.objects.filter(prompt=None, created_at__lt=past, conversation__active_prompt=None)
    for conversation in list(made.values_list("conversation", flat=True).distinct()):
        alive()
        ids = set(made.filter(conversation=conversation).values_list("pk", flat=True))
        # Read after the rows, so their steps are included.
        steps = Step.objects.filter(conversation=conversation, type="file")
        yield from ids - {step.content.get("file") for step in steps}


def _old(past: datetime, alive: Callable[[], object]) -> dict[str, set[str]]:
    """Return the contents that are old enough, by month."""
    root, found = Path(settings.MEDIA_ROOT), defaultdict[str, set[str]](set)
    for number, path in enumerate(root.glob(f"{_MONTHS}/*")):
        if number % AT_ONCE == 0:
            alive()
        if _NAME.fullmatch(path.name) and _modified_at(path) < past.timestamp():
            found[str(path.parent.relative_to(root))].add(str(path.relative_to(root)))
    return found


def _modified_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:  # removed meanwhile, with its row
        return float("inf")


def _fsync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
