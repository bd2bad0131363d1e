from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.skills import import_skills, skill_files


class Command(BaseCommand):
    help = (
        "Add or update skills from FOLDER/SKILL.md and FOLDER/*/SKILL.md. Each file begins with YAML front matter that"
        " has a name and a description. Exits with 1 if a file is not a valid skill; the others are still imported."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="The folder to import from.")

    def handle(self, *_args: object, **options: Any) -> None:
        folder: Path = options["folder"]
        if not skill_files(folder):
            raise CommandError(f"There is no SKILL.md in {folder} or in a folder directly below it.")
        bad = 0
        for found in import_skills(folder):
            if found.problem:
                bad += 1
                self.stderr.write(f"{found.file}: {found.problem}")
                continue
            missing = f" (tools that are not installed: {', '.join(found.missing)})" if found.missing else ""
            self.stdout.write(f"{found.name}: {found.outcome}{missing}")
        if bad:
            raise CommandError(f"Could not import {bad} {'file' if bad == 1 else 'files'}; the reasons are above.")
