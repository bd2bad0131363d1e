from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.backup.errors import BackupFailed
from conversations.backup.work import Restored, restore


class Command(BaseCommand):
    help = (
        "Make this site what an archive of `backup` holds. Nothing may run meanwhile. What may have happened after the"
        " backup was taken is unknown: a call that was approved is asked about before it runs again, unless it is"
        " idempotent; a tool without approval may run a second time, where a model that is asked again calls it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the archive")
        parser.add_argument("--replace", action="store_true", help="throw away the conversations that are here now")

    def handle(self, *_args: object, **options: Any) -> None:
        try:
            done = restore(options["file"], force=options["replace"])
        except (BackupFailed, OSError) as error:
            raise CommandError(str(error)) from None
        for line in _told(done):
            self.stdout.write(line)
        call_command("verify_ledger", all=True, stdout=self.stdout)
        self.stdout.write("Start the site again.")


def _told(done: Restored) -> list[str]:
    made, safe = done.manifest, done.safe
    lines = [f"This site is what it was at {made.time}, with {len(made.members) - 1} files."]
    if done.updated:
        lines.append(f"The archive is from version {made.version}: its database was brought up to this one.")
    if done.left_out:
        lines.append(f"Links that led out of their workspace, and were left out: {done.left_out}.")
    if safe.turns:
        lines.append(f"Turns that had not ended: {safe.turns}. Each says that what came after the backup is not known.")
    if safe.calls:
        lines.append(
            f"Calls that may have run after the backup: {safe.calls}. Unless idempotent, they are asked about."
        )
    lines.append("Everybody has to sign in again; passwords and API keys are those of the backup.")
    if done.again:
        lines.append("Erased or redacted after the backup, and back now. Do it again:")
        lines += [f"    python manage.py {command} --by USERNAME --reason WHY" for command in done.again]
    return lines
