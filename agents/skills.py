"""Skill import: reads SKILL.md files in the public format, one folder for each, with YAML front matter and a body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents import discovery
from agents.markdown_files import BadFile, Front, Imported, Outcome, content_of, field, import_files, names, parts
from agents.models import Skill

SHIPPED = Path(__file__).parent / "plugins/skills/shipped"
"""The skills that a new site starts with."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
"""A name in the format's `allowed-tools` may have brackets that say how the tool may be used: "Bash(git add:*)"."""


def import_skills(folder: Path) -> Iterator[Imported]:
    """Import `folder/SKILL.md` and `folder/*/SKILL.md`. Yields one result for each file.

    A skill that exists already is updated, and stays enabled or disabled as it is.
    """
    return import_files(skill_files(folder), folder, parse_skill, _save)


def add_first_skills() -> None:
    """Import the shipped skills into a site that has none."""
    if not Skill.objects.exists():
        list(import_skills(SHIPPED))


def skill_files(folder: Path) -> list[Path]:
    """Return the files to import, sorted by the names of their folders."""
    return [file for file in [folder / "SKILL.md", *sorted(folder.glob("*/SKILL.md"))] if file.exists()]


def read_skill(file: Path, folder: Path) -> Skill:
    """Return the skill in `file`, which is not saved. Raises BadFile, also for a link that leads out of `folder`."""
    return parse_skill(content_of(file, folder))


def parse_skill(content: bytes) -> Skill:
    """Return the skill in the content of a SKILL.md, which is not saved. Raises BadFile."""
    front, body = parts(content, "name", "description")
    name, description = field(front, "name", 64), field(front, "description", 1024)
    if not _NAME.fullmatch(name):
        raise BadFile(f"{name!r} is not a valid name: use lowercase letters, digits and single hyphens.")
    return Skill(name=name, description=description, body=body, tools=_tools(front))


def missing_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that do not belong to an installed tool."""
    known = {tool.name for tool in discovery.installed().tools}
    return tuple(name for name in names if name not in known)


def _save(read: Skill) -> tuple[Outcome, str]:
    missing = missing_tools(read.tools)
    note = f"tools that are not installed: {', '.join(missing)}" if missing else ""
    fields = {"description": read.description, "body": read.body, "tools": read.tools}
    known = Skill.objects.filter(name=read.name)
    if known.filter(**fields).exists():
        return "unchanged", note
    if known.update(**fields):
        return "updated", note
    read.save()
    return "added", note


def _tools(front: Front) -> list[str]:
    of = "tools" if "tools" in front else "allowed-tools"
    value = front.get(of)
    return names({"tools": _TOOL.findall(value) if isinstance(value, str) else value}, "tools", example="csv.summary")
