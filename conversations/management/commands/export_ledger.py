from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.management.arguments import conversation_id
from conversations.management.printing import flushed, reporting
from conversations.models import Conversation
from conversations.verification.ledger_file import exported_ledger


class Command(BaseCommand):
    help = (
        "Write a conversation's ledger as JSON lines, as it is stored, with the head of its chain, to stdout or to a"
        " file that only its owner can read. `verify_ledger --file` checks it anywhere. Files are named, not included."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=conversation_id, help="the conversation's id")
        parser.add_argument("--output", type=Path, metavar="FILE", help="a file that does not exist yet")

    def handle(self, *_args: object, **options: Any) -> None:
        pk: int = options["conversation"]
        try:
            if options["output"]:
                _write(options["output"], exported_ledger(pk))
                return
            with flushed(self.stdout):
                for line in exported_ledger(pk):
                    self.stdout.write(line, ending="")
        except Conversation.DoesNotExist:
            raise CommandError(f"There is no conversation {pk}.") from None


def _write(file: Path, lines: Iterable[str]) -> None:
    """Write the file completely or not at all, even if the database fails or on Ctrl-C. Raises CommandError."""
    with reporting(OSError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as output:
                output.writelines(lines)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
