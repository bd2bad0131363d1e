"""Looking at a workspace: which of its files and folders might go, and why."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agents.engine.errors import ToolError
from agents.plugins.files.box import Box
from agents.plugins.files.status import kind_of, require_regular, tool_errors
from agents.plugins.files.usage import readable

DEPTH, ENTRIES = 20, 5_000
"""Levels of folders, and entries of each folder, that are looked at."""
ENTRIES_MOST = 50_000
"""Entries that are looked at in all."""
SECONDS_MOST = 20.0
"""How long contents are compared."""
READ_MOST = 16 * 2**20
"""Bytes from the beginning of a file that are compared; of the rest, its size and its times."""
PIECE = 2**20

APART = (".git", ".hg", ".svn", "node_modules", ".venv", "venv")
"""Folders that belong to programs, in which nothing is proposed."""
CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
"""Folders that programs fill and make again."""
TEMPORARY = re.compile(
    r".*(\.tmp|\.temp|\.bak|\.old|\.orig|\.swp|\.pyc|~)|\.DS_Store|Thumbs\.db|core\.\d+", re.IGNORECASE | re.DOTALL
)
"""Names of files that were meant to last for a while only."""


@dataclass(frozen=True)
class Seen:
    """What was seen at a path: its kind, its size in bytes, when it was changed last, and a mark of its state."""

    path: str
    kind: str
    size: int
    changed: datetime
    mark: str


@dataclass
class Proposal:
    """Something that may go. `reasons` say why; `same_as` is the file of the same content that stays."""

    seen: Seen
    reasons: list[str] = field(default_factory=list)
    same_as: Seen | None = None


@dataclass(frozen=True)
class Wish:
    """What is looked for. `days` since the last change, `megabytes` of a file: so many or more; 0: does not matter."""

    temporary: bool = True
    duplicates: bool = True
    empty: bool = True
    days: int = 0
    megabytes: int = 0


def look(box: Box, path: str) -> Seen | None:
    """Return what is at this path now; None for a link, for what has hard links, and for nothing."""
    with box.place(path) as (folder, name), tool_errors(path, name, folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind = kind_of(status)
    if kind not in ("file", "folder") or (kind == "file" and status.st_nlink > 1):
        return None
    times = f"{status.st_ino}-{status.st_mtime_ns}-{status.st_ctime_ns}" if kind == "file" else f"{status.st_ino}"
    size = status.st_size if kind == "file" else 0
    return Seen(path, kind, size, datetime.fromtimestamp(status.st_mtime, UTC), f"{size}-{times}")


def now_at(box: Box, path: str) -> Seen | None:
    """Return what is at this path with all that its mark can tell: of a file its content, of a folder all in it.

    None if it is nothing that can go.
    """
    try:
        seen = look(box, path)
        if seen is None:
            return None
        return _whole_folder(box, seen) if seen.kind == "folder" else _with_content(box, seen)
    except ToolError:
        return None


def content_of(box: Box, path: str) -> str:
    """Return a digest of the beginning of a file. Raises ToolError if it cannot be read."""
    digest, left = hashlib.sha256(), READ_MOST
    with box.file(path) as (descriptor, _):
        while left and (piece := os.read(descriptor, min(PIECE, left))):
            digest.update(piece)
            left -= len(piece)
        require_regular(path, os.fstat(descriptor))
    return digest.hexdigest()


def _with_content(box: Box, seen: Seen) -> Seen:
    return Seen(seen.path, seen.kind, seen.size, seen.changed, f"{seen.mark}-{content_of(box, seen.path)}")


def _whole_folder(box: Box, folder: Seen) -> Seen | None:
    """Return a folder with the size of all in it, and a mark that each change in it changes; None for a large one."""
    size, marks = 0, [folder.mark]
    for number, entry in enumerate(box.walk(folder.path, DEPTH, ENTRIES)):
        seen = look(box, entry.path)
        if seen is None or number + 1 >= ENTRIES or entry.path.count("/") - folder.path.count("/") >= DEPTH:
            return None
        seen = _with_content(box, seen) if seen.kind == "file" else seen
        size += seen.size
        marks.append(f"{seen.path}\0{seen.kind}\0{seen.mark}")
    digest = hashlib.sha256("\n".join(marks).encode(errors="surrogateescape")).hexdigest()
    return Seen(folder.path, "folder", size, folder.changed, digest)


def proposals(box: Box, folder: str, wish: Wish, now: datetime) -> tuple[list[Proposal], bool]:
    """Return what may go of this folder, what frees most first, and whether all of it was looked at."""
    files, folders, whole = _entries(box, folder)
    found: dict[str, Proposal] = {}

    def because(seen: Seen, reason: str) -> None:
        found.setdefault(seen.path, Proposal(seen)).reasons.append(reason)

    caches = [each for each in folders if _name(each.path) in CACHES]
    for cache in caches if wish.temporary else ():
        because(cache, "A cache that programs create again when they need it.")
    files = [each for each in files if not any(part in CACHES for part in each.path.split("/")[:-1])]
    for file in files:
        if wish.temporary and TEMPORARY.fullmatch(_name(file.path)):
            because(file, "A temporary file, by its name.")
        if wish.megabytes and file.size >= wish.megabytes * 2**20:
            because(file, f"Large: {readable(file.size)}.")
        if wish.days and (days := (now - file.changed).days) >= wish.days:
            because(file, f"Not changed for {days:,} days.")
    give_up = time.monotonic() + SECONDS_MOST
    for kept, other in _duplicates(box, files, {*found}, give_up) if wish.duplicates else ():
        found.setdefault(other.path, Proposal(other)).same_as = kept
    for empty in _empty(box, folders) if wish.empty else ():
        if empty.path not in found:
            because(empty, "An empty folder.")
    marked = [_marked(box, each) for each in found.values()]
    listed = sorted(filter(None, marked), key=lambda each: (-each.seen.size, each.seen.path))
    return listed, whole and time.monotonic() < give_up


def _entries(box: Box, folder: str) -> tuple[list[Seen], list[Seen], bool]:
    """Return the files and the folders in this folder, and whether these are all. Those of programs are left out."""
    files: list[Seen] = []
    folders: list[Seen] = []
    whole, below = True, Counter[str]()
    deepest = DEPTH + (0 if folder == "." else folder.count("/") + 1)
    for number, entry in enumerate(box.walk(folder, DEPTH, ENTRIES + 1)):
        if number >= ENTRIES_MOST:
            return files, folders, False
        parts = entry.path.split("/")
        if entry.kind not in ("file", "folder") or any(part in APART for part in parts):
            continue
        below[entry.path.rpartition("/")[0]] += 1
        try:
            seen = look(box, entry.path)
            if entry.kind == "folder" and len(parts) == deepest and next(box.walk(entry.path), None):
                whole = False
        except ToolError as error:
            whole = whole and error.code == "not_found"  # it is gone by now; or else it cannot be reached
            continue
        if seen:
            (files if seen.kind == "file" else folders).append(seen)
    return files, folders, whole and all(count <= ENTRIES for count in below.values())


def _duplicates(box: Box, files: Iterable[Seen], leaving: set[str], give_up: float) -> Iterator[tuple[Seen, Seen]]:
    """Yield each file that has the content of another, after the one that stays.

    That is one that is not `leaving` for another reason, if there is one: of these the oldest, or else the first.
    """
    by_size: dict[int, list[Seen]] = defaultdict(list)
    for file in files:
        by_size[file.size].append(file)
    for size, alike in sorted(by_size.items(), reverse=True):
        if not 0 < size <= READ_MOST or len(alike) < 2:
            continue
        by_content: dict[str, list[Seen]] = defaultdict(list)
        for file in sorted(alike, key=lambda each: (each.path in leaving, each.changed, each.path)):
            if time.monotonic() >= give_up:
                return
            try:
                by_content[content_of(box, file.path)].append(file)
            except ToolError:
                continue
        for kept, *others in by_content.values():
            yield from ((kept, other) for other in others)


def _empty(box: Box, folders: Iterable[Seen]) -> Iterator[Seen]:
    """Yield the folders that have nothing in them but empty folders; of those within each other only the outermost."""
    last = ""
    for folder in folders:  # what is in a folder comes right after it
        inside = last and folder.path.startswith(f"{last}/")
        if not inside and all(entry.kind == "folder" for entry in box.walk(folder.path, DEPTH, ENTRIES)):
            last = folder.path
            yield folder


def _marked(box: Box, proposal: Proposal) -> Proposal | None:
    """Return the proposal with whole marks; None if what it is about has changed meanwhile, or cannot go."""
    seen = now_at(box, proposal.seen.path)
    if seen is None or seen.kind != proposal.seen.kind:
        return None
    if proposal.same_as is None:
        return Proposal(seen, proposal.reasons)
    kept = now_at(box, proposal.same_as.path)
    return Proposal(seen, proposal.reasons, kept) if kept else None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
