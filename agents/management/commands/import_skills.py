from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.skills import import_skills, skill_files


class Command(BaseCommand):
    help = (
        "Add the skills of a folder, or bring them up to date: FOLDER/SKILL.md and FOLDER/*/SKILL.md, each with name"
        " and description in YAML above its text. Exits with 1 where a file is none; the others are imported all the"
        " same."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *_args: object, **options: Any) -> None:
        folder: Path = options["folder"]
        if not skill_files(folder):
            raise CommandError(f"There is no SKILL.md in {folder}, nor in a folder in it.")
        bad = 0
        for found in import_skills(folder):
            if found.problem:
                bad += 1
                self.stderr.write(f"{found.file}: {found.problem}")
                continue
            missing = f" (not installed, so not offered: {', '.join(found.missing)})" if found.missing else ""
            self.stdout.write(f"{found.name}: {found.done}{missing}")
        if bad:
            raise CommandError(f"{bad} of these files could not be imported.")
