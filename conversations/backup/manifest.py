"""The manifest of an archive: when and from what it was made, and what it must contain."""

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

FORMAT = 1
"""The format of archives: a site refuses a format that it does not know."""
HEADS = "SELECT id, seq, head FROM conversations_conversation ORDER BY id"
"""The heads of all ledgers of a site."""
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"
"""The migrations that made its tables."""

Row = tuple[Any, ...]


class BackupFailed(Exception):
    """A backup or a restore failed. The message says why, and what to do."""


@dataclass(frozen=True)
class DatabaseState:
    """The state of a database: its migrations as `app.name`, its ledgers, and one digest over all of their heads."""

    migrations: list[str]
    conversations: int
    steps: int
    heads: str

    @classmethod
    def of(cls, applied: Iterable[Row], heads: Iterable[Row]) -> DatabaseState:
        """Return the state, from the rows of APPLIED and of HEADS."""
        rows = [list(row) for row in heads]
        return cls([".".join(row) for row in applied], len(rows), sum(row[1] for row in rows), digest(rows))


@dataclass(frozen=True)
class Manifest:
    """The manifest. `made_at` (ISO 8601, UTC) is before the first byte was copied; `database`: sqlite or postgresql.

    `members`: size in bytes and sha256 of each file of the archive, by its name in it. `left_out`: how many special
    files, and links that lead out, there were in workspaces. `unread`: what could not be read, each with the reason.
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
        """Return the text that is stored in the archive."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Parse a manifest. Raises BackupFailed if it is not a manifest of this format."""
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise BackupFailed(f"The archive has format {fields['format']}, but this version reads only {FORMAT}.")
            fields["state"] = DatabaseState(**fields["state"])
            fields["members"] = {name: (int(size), str(sha)) for name, (size, sha) in fields["members"].items()}
            manifest = cls(**fields)
            datetime.fromisoformat(manifest.made_at)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupFailed(f"The archive's manifest cannot be read: {error!r}") from None
        return manifest

    @property
    def time(self) -> str:
        """When it was made, for people."""
        return datetime.fromisoformat(self.made_at).strftime("%Y-%m-%d %H:%M:%S UTC")

    def unknown_migrations(self) -> list[str]:
        """Return the migrations of the archive that this version does not have."""
        known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations or {}}
        return sorted(set(self.state.migrations) - known)


def this_version() -> str:
    """The version of the program."""
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    return version
