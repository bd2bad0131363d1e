from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.core.management.base import CommandError

from agents.blueprints import blueprint_files, import_blueprints
from agents.management.importing import ImportCommand
from agents.markdown_files import Imported


class Command(ImportCommand):
    help = (
        "Add or update blueprints from the Markdown files in FOLDER and below it, but for README.md. Each begins with"
        " YAML front matter that has a name and says when to use it, and may have tags and groups. Exits with 1 if a"
        " file is not a valid blueprint; the others are still imported."
    )

    def imported(self, folder: Path) -> Iterator[Imported]:
        if not blueprint_files(folder):
            raise CommandError(f"There is no Markdown file (*.md) in {folder}, besides what says README.")
        return import_blueprints(folder)
