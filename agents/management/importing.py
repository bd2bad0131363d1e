"""The commands that import Markdown files of a folder: what they print, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.markdown_files import Imported


class ImportCommand(BaseCommand):
    """The base of such a command. It exits with 1 if a file cannot be imported; the others still are."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the folder."""
        parser.add_argument("folder", type=Path, help="The folder to import from.")

    def imported(self, folder: Path) -> Iterator[Imported]:
        """Import the files of a folder. Raises CommandError if there are none."""
        raise NotImplementedError

    def handle(self, *_args: object, **options: Any) -> None:
        """Import them, and print a line for each."""
        bad = 0
        for found in self.imported(options["folder"]):
            if found.problem:
                bad += 1
                self.stderr.write(f"{found.file}: {found.problem}")
                continue
            self.stdout.write(f"{found.name}: {found.outcome}{f' ({found.note})' if found.note else ''}")
        if bad:
            raise CommandError(f"Could not import {bad} {'file' if bad == 1 else 'files'}; the reasons are above.")
