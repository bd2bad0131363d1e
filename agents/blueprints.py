"""Blueprint import: reads Markdown files of a folder, each with YAML front matter and the text of a blueprint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import Group
from django.db import transaction

from agents.markdown_files import BadFile, Imported, Outcome, field, import_files, names, parts
from agents.models import Blueprint
from agents.models.blueprint import NAME_MOST, TAG_MOST, TAGS_MOST, TEXT_MOST, WHEN_MOST

FIELDS = ("name", "when", "tags", "groups")
README = "readme.md"
"""What a folder says of itself is no blueprint."""


@dataclass(frozen=True)
class BlueprintFile:
    """What a file says of a blueprint. `groups` are None if it says nothing of them: then they stay as they are."""

    name: str
    when: str
    text: str
    tags: list[str]
    groups: list[str] | None


def import_blueprints(folder: Path) -> Iterator[Imported]:
    """Import all Markdown files in a folder and below it. Yields one result for each file.

    A blueprint that exists already is updated, and stays enabled or disabled as it is.
    """
    return import_files(blueprint_files(folder), folder, parse_blueprint, _save)


def blueprint_files(folder: Path) -> list[Path]:
    """Return the files to import, sorted by their paths. Hidden ones and README.md are none."""
    found = (file for file in folder.rglob("*.md") if file.name.casefold() != README)
    return sorted(file for file in found if not any(part[0] == "." for part in file.relative_to(folder).parts))


def parse_blueprint(content: bytes) -> BlueprintFile:
    """Return what the content of a file says. Raises BadFile."""
    front, text = parts(content, "name", "when")
    if unknown := [name for name in front if name not in FIELDS]:
        raise BadFile(f"its front matter has a field `{unknown[0]}`: there are only {', '.join(FIELDS)}.")
    name, when = field(front, "name", NAME_MOST), field(front, "when", WHEN_MOST)
    if len(text) > TEXT_MOST:
        raise BadFile(f"its text has {len(text):,} characters: shorten it to {TEXT_MOST:,}, or make several of it.")
    tags = names(front, "tags", example="refund, invoice")
    if len(tags) > TAGS_MOST or any(len(tag) > TAG_MOST for tag in tags):
        raise BadFile(f"it has too many tags, or too long ones: at most {TAGS_MOST}, of {TAG_MOST} characters each.")
    groups = names(front, "groups", example="Support") if "groups" in front else None
    if groups == [] and front["groups"] != []:
        raise BadFile("its `groups` names none: name some, or write `groups: []` if it is for everybody.")
    return BlueprintFile(name, when, text, tags, groups)


def _save(read: BlueprintFile) -> tuple[Outcome, str]:
    groups = None if read.groups is None else _groups(read.groups)
    fields: dict[str, object] = {"when": read.when, "text": read.text, "tags": read.tags}
    if groups is not None:
        fields["restricted"] = bool(groups)
    with transaction.atomic():
        blueprint = Blueprint.objects.select_for_update().filter(name=read.name).first()
        outcome: Outcome = "updated" if blueprint else "added"
        blueprint = blueprint or Blueprint(name=read.name)
        same = all(getattr(blueprint, name) == value for name, value in fields.items())
        if outcome == "updated" and same and (groups is None or set(groups) == set(blueprint.groups.all())):
            return "unchanged", _note(blueprint)
        for name, value in fields.items():
            setattr(blueprint, name, value)
        blueprint.save()
        if groups is not None:
            blueprint.groups.set(groups)
    return outcome, _note(blueprint)


def _note(blueprint: Blueprint) -> str:
    if not blueprint.enabled:
        return "disabled, and stays so"
    return "told to nobody: its groups are gone" if blueprint.restricted and not blueprint.groups.exists() else ""


def _groups(wanted: list[str]) -> list[Group]:
    """Return the groups with these names. Raises BadFile if there is no such one."""
    there = list(Group.objects.filter(name__in=wanted))
    if missing := sorted(set(wanted) - {group.name for group in there}):
        raise BadFile(f"there is no group {missing[0]!r}: create it in the admin, or take it out of `groups`.")
    return there
