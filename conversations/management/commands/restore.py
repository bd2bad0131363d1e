from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from conversations.backup.manifest import BackupFailed
from conversations.backup.work import Restored, restore
from conversations.management.printing import reporting


class Command(BaseCommand):
    help = (
        "Restore this site from an archive made by `backup`. Stop the site first. What happened after the backup is"
        " unknown: before an approved call runs again, its owner is asked, unless it is idempotent. A tool that needs"
        " no approval may run a second time if the model calls it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the archive")
        parser.add_argument("--replace", action="store_true", help="delete the conversations that this site has now")

    def handle(self, *_args: object, **options: Any) -> None:
        with reporting(BackupFailed, OSError):
            done = restore(options["file"], force=options["replace"])
        for line in _summary(done):
            self.stdout.write(line)
        call_command("verify_ledger", all=True, stdout=self.stdout)
        self.stdout.write("Start the site again.")


def _summary(done: Restored) -> list[str]:
    made, safe = done.manifest, done.safe
    lines = [f"Restored this site as of {made.time}, with {len(made.members) - 1} files."]
    if done.updated:
        lines.append(f"The archive is from version {made.version}; its database was migrated to this version.")
    if done.left_out:
        lines.append(
            f"Links that led out of their workspace, or through too many others, and were left out: {done.left_out}."
        )
    if safe.turns:
        lines.append(f"Turns that had not ended: {safe.turns}. Each notes that what came after the backup is unknown.")
    if safe.calls:
        lines.append(
            f"Calls that may have run after the backup: {safe.calls}. Unless idempotent, their owners are asked."
        )
    lines.append("Everybody has to sign in again, with the passwords and API keys of the backup.")
    if done.again:
        lines.append("These were erased or redacted after the backup and are back now. Repeat it:")
        lines += [f"    python manage.py {command} --by USERNAME --reason WHY" for command in done.again]
    return lines
