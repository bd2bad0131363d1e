"""What an archive says of itself: when it was made and of what, and what must lie in it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.migrations.loader import MigrationLoader

from agents.engine.ledger import digest
from conversations.backup.errors import BackupFailed

FORMAT = 1
"""Of the archive: a site refuses one that it does not know."""
HEADS = "SELECT id, seq, head FROM conversations_conversation ORDER BY id"
"""Where every ledger of a site stands."""
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"
"""What made its tables."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class DatabaseState:
    """Where a database stands: its migrations as `app.name`, its ledgers, and one digest over all of their heads."""

    migrations: list[str]
    conversations: int
    steps: int
    heads: str

    @classmethod
    def of(cls, applied: Iterable[Row], heads: Iterable[Row]) -> DatabaseState:
        """From the rows of APPLIED and of HEADS."""
        rows = [list(row) for row in heads]
        return cls([".".join(row) for row in applied], len(rows), sum(row[1] for row in rows), digest(rows))


@dataclass(frozen=True)
class Manifest:
    """`made_at` (ISO 8601, UTC) is before the first byte was copied; `database` is sqlite or postgresql.

    `members`: size in bytes and sha256 of each file of the archive, by its name in it. `left_out`: how many things in
    workspaces are no files, folders or links that stay inside. `unread`: what could not be read, each with the reason.
    """

    made_at: str
    database: str
    state: DatabaseState
    version: str
    members: dict[str, tuple[int, str]] = field(default_factory=dict)
    left_out: int = 0
    unread: list[str] = field(default_factory=list)
    format: int = FORMAT

    def as_json(self) -> bytes:
        """What stands in the archive."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read it back. Raises BackupFailed for what no backup of this format says."""
        try:
            told = json.loads(text)
            if told["format"] != FORMAT:
                raise BackupFailed(f"The archive is of format {told['format']}, and this version reads {FORMAT}.")
            told["state"] = DatabaseState(**told["state"])
            told["members"] = {name: (int(size), str(sha)) for name, (size, sha) in told["members"].items()}
            manifest = cls(**told)
            datetime.fromisoformat(manifest.made_at)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupFailed(f"The archive's manifest cannot be read: {error!r}") from None
        return manifest

    @property
    def time(self) -> str:
        """When it was made, for people."""
        return datetime.fromisoformat(self.made_at).strftime("%Y-%m-%d %H:%M:%S UTC")

    def unknown_migrations(self) -> list[str]:
        """Those that made the archive's tables, and that this version does not have."""
        known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations or {}}
        return sorted(set(self.state.migrations) - known)


def this_version() -> str:
    """The version of the program."""
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    return version
