from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.core.management.base import CommandError

from agents.management.importing import ImportCommand
from agents.markdown_files import Imported
from agents.skills import import_skills, skill_files


class Command(ImportCommand):
    help = (
        "Add or update skills from FOLDER/SKILL.md and FOLDER/*/SKILL.md. Each file begins with YAML front matter that"
        " has a name and a description. Exits with 1 if a file is not a valid skill; the others are still imported."
    )

    def imported(self, folder: Path) -> Iterator[Imported]:
        if not skill_files(folder):
            raise CommandError(f"There is no SKILL.md in {folder} or in a folder directly below it.")
        return import_skills(folder)
