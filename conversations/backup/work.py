"""Making a backup of this site, and making this site out of one."""

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
from conversations.backup.archive import DATABASE, FILES, LINKS_WITHIN, WORKSPACES, unpack, writing
from conversations.backup.errors import BackupFailed
from conversations.backup.exchange import Exchange
from conversations.backup.folders import things_in
from conversations.backup.manifest import Manifest, this_version
from conversations.backup.standstill import STOP, at_work
from conversations.backup.taken_out import TakenOut
from conversations.models import Conversation, Erasure


def back_up(target: Path, *, force: bool = False) -> Manifest:
    """Archive this site in the file `target` while it runs. Raises BackupFailed, OSError.

    The database first: a file is there before the row that names it, so every file that the copy names is archived.
    """
    made_at = datetime.now(UTC).isoformat()
    with (
        writing(target, force=force) as archive,
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder,
    ):
        copied = Path(folder) / DATABASE
        state = databases.copy(copied)
        with copied.open("rb") as content:
            archive.add(DATABASE, content)
        copied.unlink()
        for name, root in _folders().items():
            for found in things_in(root, links_within=LINKS_WITHIN[name]):
                archive.add_found(name, found)
        contents = (archive.members, archive.left_out, archive.unread)
        manifest = Manifest(made_at, connection.vendor, state, this_version(), *contents)
        archive.finish(manifest)
    return manifest


def _folders() -> dict[str, Path]:
    return {FILES: Path(settings.MEDIA_ROOT), WORKSPACES: Path(settings.AGENTSITE_WORKSPACES)}


@dataclass(frozen=True)
class Restored:
    """What came of a restore. `again`: commands that erase and redact once more what was so after the backup.

    `left_out`: links of the archive that led out of their workspace.
    """

    manifest: Manifest
    safe: Safe
    updated: bool
    again: list[str]
    left_out: int


def restore(source: Path, *, force: bool = False) -> Restored:
    """Have this site be what the archive holds, with its past made safe. `force`: what is here now may go.

    Nothing is changed until the archive has been read to its end and found whole. Raises BackupFailed, OSError.
    """
    _stands_still()
    _is_free(force=force)
    with tempfile.TemporaryDirectory(dir=settings.AGENTSITE_DATA, prefix=".restore-") as name, ExitStack() as stack:
        folder = Path(name)
        manifest, left_out = unpack(source, folder)
        _fits(manifest)
        exchanges = [stack.enter_context(Exchange(root, folder / room)) for room, root in _folders().items()]
        taken_out = TakenOut.now() if _has(Erasure) else TakenOut()
        databases.put_back(folder / DATABASE)
        with _to_its_end():
            if replace(databases.state(), migrations=manifest.state.migrations) != manifest.state:
                raise BackupFailed("what was put back is not what the archive says")
            for exchange in exchanges:
                exchange.take_place()
            call_command("migrate", interactive=False, verbosity=0)
            updated = databases.state().migrations != manifest.state.migrations
            safe = make_safe(manifest.time)
    return Restored(manifest, safe, updated, list(taken_out.again()), left_out)


@contextmanager
def _to_its_end() -> Iterator[None]:
    """What begins here must end: else turns are held for ever, and what they did after the backup is not known."""
    try:
        yield
    except Exception as error:
        raise BackupFailed(
            f"The restore did not come to its end: {error}. No turn of the backup runs until it has: put that"
            " right, then restore the archive again, with --replace."
        ) from error


def _stands_still() -> None:
    if running := at_work():
        raise BackupFailed(f"Nothing was changed: {'; '.join(running)}. {STOP}")


def _is_free(*, force: bool) -> None:
    there = Conversation.objects.count() if _has(Conversation) else 0
    if there and not force:
        raise BackupFailed(
            f"Nothing was changed: this site holds {there} conversation{'' if there == 1 else 's'}, which a restore"
            " throws away with their files and workspaces. Make a backup of it, then say --replace."
        )


def _has(model: type[Model]) -> bool:
    return model._meta.db_table in connection.introspection.table_names()


def _fits(manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupFailed(
            f"Nothing was changed: the archive holds a {manifest.database} database, and DATABASE_URL names a"
            f" {connection.vendor} one. Restore it where the same kind is used."
        )
    if unknown := manifest.unknown_migrations():
        raise BackupFailed(
            f"Nothing was changed: the archive is from version {manifest.version}, whose database this version does"
            f" not know ({unknown[0]}). Install that version, or a newer one."
        )
