"""The contents of files: on the disk before their rows are stored, and taken away where nothing came of them."""

from __future__ import annotations

import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

from conversations.models import File, Step

if TYPE_CHECKING:
    from django.core.files.base import File as Content

logger = logging.getLogger(__name__)

GRACE = timedelta(days=1)
"""What is younger may still get its row, or its row a step: hours longer than any request or tool takes."""
ORPHANS_MOST = 10
"""Contents of one night that killed workers may have left, or a hundredth of all where that is more."""
AT_ONCE = 500
"""Files that are looked at between two signs of life."""
_MONTHS = "[0-9][0-9][0-9][0-9]/[0-9][0-9]"
_NAME = re.compile(r"[0-9a-f]{64}(_\w{7})?")
"""A digest, with Django's end where that was taken. Nothing else in the folder is ours to take away."""


def store(row: File, content: Content[bytes]) -> None:
    """Store a row's content, by its digest: from now on not even a loss of power loses it.

    The row is not saved: that comes after it, so that no row is ever without its content.
    """
    row.content.save(row.sha256, content, save=False)
    name = PurePosixPath(str(row.content.name))
    for path in (name, *name.parents):
        _fsync(Path(settings.MEDIA_ROOT) / path)


def sweep(alive: Callable[[], object] = lambda: None) -> int:
    """Take away files whose record was never committed, and contents without a row; returns how many contents.

    A row that no step names goes once no turn of its conversation is under way: only the turn that made it names it.
    Contents that are more than killed workers leave are kept, and the log says so: such is another site's folder.
    `alive` is called again and again.
    """
    past, there_were = timezone.now() - GRACE, File.objects.count()
    File.objects.filter(pk__in=list(_unrecorded(past, alive))).delete()
    left: list[str] = []
    for month, names in _old(past, alive).items():
        rows = File.objects.filter(content__startswith=f"{month}/")
        left += names - set(rows.values_list("content", flat=True))
    if left and (not there_were or len(left) > max(ORPHANS_MOST, there_were // 100)):
        logger.error(
            "%d files in %s are named by no row and were kept. Is this the database that belongs to them?",
            len(left),
            settings.MEDIA_ROOT,
        )
        return 0
    for name in left:
        (Path(settings.MEDIA_ROOT) / name).unlink(missing_ok=True)
    if left:
        logger.info("%d files were removed that no row names", len(left))
    return len(left)


def _unrecorded(past: datetime, alive: Callable[[], object]) -> Iterator[int]:
    """The rows of files that a tool made and no step names."""
    made = File.objects.filter(prompt=None, created_at__lt=past, conversation__active_prompt=None)
    for conversation in list(made.values_list("conversation", flat=True).distinct()):
        alive()
        ids = set(made.filter(conversation=conversation).values_list("pk", flat=True))
        steps = Step.objects.filter(conversation=conversation, type="file")  # read after the rows: all of theirs stand
        yield from ids - {step.content.get("file") for step in steps}


def _old(past: datetime, alive: Callable[[], object]) -> dict[str, set[str]]:
    """The contents that have lain for long, by their month."""
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
    except FileNotFoundError:  # taken away meanwhile, with its row
        return float("inf")


def _fsync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
