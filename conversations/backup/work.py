"""Making a backup of this site, and restoring the site from one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.models import Model

from conversations.backup import databases
from conversations.backup.after_restore import Safe, make_safe
from conversations.backup.archive import DATABASE, unpack, writing
from conversations.backup.exchange import Exchange
from conversations.backup.folders import FILES, WORKSPACES, Walk, archive_entry
from conversations.backup.manifest import BackupFailed, Manifest, this_version
from conversations.backup.standstill import STOP, running_parts
from conversations.backup.taken_out import TakenOut
from conversations.models import Conversation, Erasure
from conversations.verification.all import ensure_schedule


def back_up(target: Path, *, force: bool = False) -> Manifest:
    """Write an archive of this site to the file `target`, while the site may run. Raises BackupFailed, OSError.

    The database is copied first: a file is stored before the row that names it, so every file that the copy names is
    archived.
    """
    made_at = datetime.now(UTC).isoformat()
    with writing(target, force=force) as archive:
        copied = archive.folder / DATABASE
        state = databases.copy(copied)
        with copied.open("rb") as database:
            archive.add(archive_entry(DATABASE, size=copied.stat().st_size), database)
        copied.unlink()
        walk = Walk()
        for name, root in _folders().items():
            for entry, content in walk.below(root, name):
                archive.add(entry, content)
        contents = (archive.members, walk.left_out, walk.unread)
        manifest = Manifest(made_at, connection.vendor, state, this_version(), *contents)
        archive.finish(manifest)
    return manifest


def _folders() -> dict[str, Path]:
    return {FILES: Path(settings.MEDIA_ROOT), WORKSPACES: Path(settings.AGENTSITE_WORKSPACES)}


@dataclass(frozen=True)
class Restored:
    """The result of a restore. `again`: commands that repeat the erasures and redactions made after the backup.

    `left_out`: the number of links in the archive that led out of their workspace, or through too many others.
    """

    manifest: Manifest
    safe: Safe
    updated: bool
    again: list[str]
    left_out: int


def restore(source: Path, *, force: bool = False) -> Restored:
    """Replace this site with the content of the archive, and make it safe. `force`: what is here now may be deleted.

    Nothing is changed until the archive has been read and checked completely. Raises BackupFailed, OSError.
    """
    _check_stopped()
    _check_empty(force=force)
    with tempfile.TemporaryDirectory(dir=settings.AGENTSITE_DATA, prefix=".restore-") as name, ExitStack() as stack:
        folder = Path(name)
        manifest, left_out = unpack(source, folder)
        _check_compatible(manifest)
        exchanges = [Exchange(root, folder / room) for room, root in _folders().items()]
        for exchange in exchanges:
            stack.callback(exchange.clean)
            exchange.stage()
        taken_out = TakenOut.now() if _has(Erasure) else TakenOut()
        databases.restore(folder / DATABASE)
        with _must_finish():
            if replace(databases.state(), migrations=manifest.state.migrations) != manifest.state:
                raise BackupFailed("the restored database does not match the manifest")
            for exchange in exchanges:
                exchange.swap()
            call_command("migrate", interactive=False, verbosity=0)
            updated = databases.state().migrations != manifest.state.migrations
            safe = make_safe(manifest.time)
            ensure_schedule()
    return Restored(manifest, safe, updated, list(taken_out.again()), left_out)


@contextmanager
def _must_finish() -> Iterator[None]:
    """Explain a failure in this block, which must finish in the end: until then the turns stay held."""
    try:
        yield
    except Exception as error:
        raise BackupFailed(
            f"The restore did not finish: {error}. No turn of the backup runs until it has finished. Fix the cause,"
            " then restore the archive again with --replace."
        ) from error


def _check_stopped() -> None:
    if running := running_parts():
        raise BackupFailed(f"Nothing was changed: {'; '.join(running)}. {STOP}")


def _check_empty(*, force: bool) -> None:
    there = Conversation.objects.count() if _has(Conversation) else 0
    if there and not force:
        raise BackupFailed(
            f"Nothing was changed: this site has {there} conversation{'' if there == 1 else 's'}, which a restore"
            " deletes with their files and workspaces. Make a backup of it, then use --replace."
        )


def _has(model: type[Model]) -> bool:
    return model._meta.db_table in connection.introspection.table_names()


def _check_compatible(manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupFailed(
            f"Nothing was changed: the archive contains a {manifest.database} database, but DATABASE_URL names a"
            f" {connection.vendor} one. Restore it on a site with the same kind of database."
        )
    if unknown := manifest.unknown_migrations():
        raise BackupFailed(
            f"Nothing was changed: the archive is from version {manifest.version}, whose database this version does"
            f" not know ({unknown[0]}). Install that version, or a newer one."
        )
