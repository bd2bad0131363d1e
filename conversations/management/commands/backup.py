from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.template.defaultfilters import pluralize

from conversations.backup.manifest import BackupFailed
from conversations.backup.work import back_up
from conversations.management.printing import reporting

NAMED_MOST = 20
"""Unreadable files that are listed by name."""


class Command(BaseCommand):
    help = (
        "Write an archive with the database, the files and the workspaces, while the site runs or not. It contains all"
        " conversations, and the hashes of passwords and API keys, so only its owner can read it. The secret key is not"
        " included: it signs sessions and links in e-mails, which a restore ends anyway."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the archive, such as agentsite.tar.gz")
        parser.add_argument("--force", action="store_true", help="replace the file if it exists")

    def handle(self, *_args: object, **options: Any) -> None:
        file: Path = options["file"]
        with reporting(BackupFailed, OSError):
            made = back_up(file, force=options["force"])
        left = f" Left out of workspaces: {made.left_out} links and other things that are not files."
        conversations, steps, files = made.state.conversations, made.state.steps, len(made.members) - 1
        self.stdout.write(
            f"{file} holds {conversations} conversation{pluralize(conversations)}, {steps} step{pluralize(steps)} and"
            f" {files} file{pluralize(files)}, as of {made.time}.{left if made.left_out else ''}"
        )
        if made.unread:
            self.stderr.write(f"Left out because they could not be read: {len(made.unread)}.")
        for unread in made.unread[:NAMED_MOST]:
            self.stderr.write(f"  {unread!r}")
