"""The archive: a `tar.gz` that is written completely or not at all, and never unpacks outside of its folder."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from conversations.backup.folders import FILES, WORKSPACES, archive_entry, stays_inside
from conversations.backup.links import leading_inside
from conversations.backup.manifest import BackupFailed, Manifest

MANIFEST, DATABASE = "manifest.json", "database"
IN_MEMORY = 8_000_000
"""Bytes of a file kept in memory until it has been read: it may shrink meanwhile."""
MANIFEST_MOST = 200_000_000


@dataclass
class Writer:
    """An archive that is being written. `members` go into its manifest; `folder` is for temporary files."""

    tar: tarfile.TarFile
    folder: Path
    members: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, info: tarfile.TarInfo, content: BinaryIO | None) -> None:
        """Add an entry. Of a file, what is there of its `info.size` bytes: it may shrink, or grow without end."""
        if content is None:
            self.tar.addfile(info)
            return
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(self.folder)) as whole:
            self.members[info.name] = info.size, _ = _copy(content, whole, info.size)
            whole.seek(0)
            self.tar.addfile(info, whole)

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest, which is the last member."""
        text, info = manifest.as_json(), archive_entry(MANIFEST)
        info.size = len(text)
        self.tar.addfile(info, io.BytesIO(text))


@contextmanager
def writing(target: Path, *, force: bool) -> Iterator[Writer]:
    """Write an archive to `target`, mode 0600, once the block has succeeded. Raises BackupFailed if it exists."""
    if target.exists() and not force:
        raise BackupFailed(f"{target} already exists. Choose another name, or use --force to replace it.")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        archive = Path(name, "archive")
        archive.touch(mode=0o600)
        with archive.open("w+b") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT) as tar:
                yield Writer(tar, archive.parent)
            file.flush()
            os.fsync(file.fileno())
        if force:
            archive.replace(target)
            return
        try:
            os.link(archive, target)  # fails if the file was created meanwhile
        except FileExistsError:
            raise BackupFailed(f"{target} was created by somebody else meanwhile.") from None


def unpack(archive: Path, folder: Path) -> tuple[Manifest, int]:
    """Unpack an archive into the empty `folder`, and check it against its manifest.

    Returns the manifest, and how many links were left out: they led out of their workspace, or through too many others.
    Raises BackupFailed.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            found = _Unpacking(folder)
            for member in tar:
                found.take(tar, member)
        return found.finish()
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise BackupFailed(f"{archive} cannot be read completely: {error}") from None


class _Unpacking:
    """An archive that is being unpacked. Links are made last, so that nothing is written through one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digests: dict[str, tuple[int, str]] = {}
        self.links: dict[PurePosixPath, str] = {}
        self.manifest: Manifest | None = None

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Unpack one member. Raises BackupFailed for one that no backup contains."""
        if self.manifest:
            raise BackupFailed(f"The archive goes on after its end, with {member.name!r}: it is not a backup.")
        content = tar.extractfile(member) if member.isreg() else None
        if member.name == MANIFEST and content:
            self.manifest = Manifest.from_json(content.read(MANIFEST_MOST))
            return
        place = self._place(member)
        if member.isdir():
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            return
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if member.issym():
            self.links[PurePosixPath(member.name)] = member.linkname
        elif content:
            self.digests[member.name] = _write(place, content, member)

    def _place(self, member: tarfile.TarInfo) -> Path:
        path = PurePosixPath(member.name)
        inside = not path.is_absolute() and ".." not in path.parts and str(path) == member.name.rstrip("/")
        if member.name == DATABASE:
            known = member.isreg()
        elif len(path.parts) > 1 and path.parts[0] in (FILES, WORKSPACES):
            link = member.issym() and stays_inside(path, member.linkname)
            known = member.isreg() or member.isdir() or link
        else:
            known = False
        if not (inside and known) or path in self.links:
            raise _no_backup(member.name)
        return self.folder / path

    def finish(self) -> tuple[Manifest, int]:
        """Make the links that stay inside; return what `unpack` returns.

        Raises BackupFailed if the manifest does not match, or if there is something at or below the place of a link.
        """
        if self.manifest is None:
            raise BackupFailed("The archive has no manifest: it was cut off, or is not a backup.")
        wrong = {name for name, _ in self.digests.items() ^ self.manifest.members.items()}
        if wrong or DATABASE not in self.digests:
            named = ", ".join(sorted(wrong)[:3]) or DATABASE
            raise BackupFailed(f"The archive is damaged: {named} does not match the manifest. Nothing was changed.")
        if covered := [path for path in self.links if os.path.lexists(self.folder / path)]:
            raise _no_backup(str(covered[0]))
        inside = leading_inside(self.links)
        for path in inside:
            (self.folder / path).symlink_to(self.links[path])
        return self.manifest, len(self.links) - len(inside)


def _no_backup(name: str) -> BackupFailed:
    return BackupFailed(f"The archive contains {name!r}, which no backup does. Nothing was changed.")


def _write(place: Path, content: IO[bytes], member: tarfile.TarInfo) -> tuple[int, str]:
    """Write the content to a new file that only its owner can read; return its size and sha256."""
    mode = 0o600 | member.mode & 0o100
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        return _copy(content, file, member.size)


def _copy(content: IO[bytes], target: IO[bytes], most: int) -> tuple[int, str]:
    """Copy at most so many bytes of the content; return how many, and their sha256."""
    sha, left = hashlib.sha256(), most
    while chunk := content.read(min(left, 1 << 20)):
        sha.update(chunk)
        target.write(chunk)
        left -= len(chunk)
    return target.tell(), sha.hexdigest()
