"""Skills from files in the public format: a folder for each, with a SKILL.md of front matter in YAML and a body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from agents import discovery
from agents.models import Skill

FILE_MOST = 100_000
"""Bytes of one SKILL.md: far more than an agent should be told at once."""
FRONT_MOST = 10_000
"""Characters of its front matter: a description has at most 1,024."""
SHIPPED = Path(__file__).parent / "plugins/skills/shipped"
"""What a new site starts with."""

_FRONT = re.compile(r"\s*---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
"""The format's `allowed-tools` may say in brackets what a tool may be used for: "Bash(git add:*)" is one name."""


class BadSkill(Exception):
    """A file that is no skill: what is wrong with it, and what to do."""


@dataclass(frozen=True)
class Imported:
    """What became of one file: what was done with the row `name`, or the `problem` for which nothing was."""

    file: Path
    name: str = ""
    done: Literal["added", "updated", "unchanged", ""] = ""
    missing: tuple[str, ...] = ()
    """The tools it names that are not installed."""
    problem: str = ""


@dataclass(frozen=True)
class ParsedSkill:
    """What a file says."""

    name: str
    description: str
    body: str
    tools: tuple[str, ...]


def import_skills(folder: Path) -> Iterator[Imported]:
    """Make rows of `folder/SKILL.md` and `folder/*/SKILL.md`, one result for each file.

    A row of the same name takes what the file says, and stays enabled or not as it is.
    """
    seen: dict[str, Path] = {}
    for file in skill_files(folder):
        try:
            read = read_skill(file, folder)
        except BadSkill as bad:
            yield Imported(file, problem=str(bad))
            continue
        if other := seen.get(read.name):
            yield Imported(file, problem=f"{other} has the name {read.name!r} already: give one of them another.")
            continue
        seen[read.name] = file
        yield Imported(file, read.name, _save(read), missing_tools(read.tools))


def add_first_skills() -> None:
    """Import those that we ship, into a site that has none."""
    if not Skill.objects.exists():
        list(import_skills(SHIPPED))


def skill_files(folder: Path) -> list[Path]:
    """The files to import, in the order of their folders' names."""
    return [file for file in [folder / "SKILL.md", *sorted(folder.glob("*/SKILL.md"))] if file.exists()]


def read_skill(file: Path, folder: Path) -> ParsedSkill:
    """The skill in `file`. Raises BadSkill, also for a file that a link brings in from outside `folder`."""
    match = _FRONT.match(text := _text_of(file, folder))
    if not match:
        raise BadSkill("it does not begin with front matter: write `---`, name and description, and `---` above it.")
    front = _front(match[1])
    name, description = _line(front, "name", 64), _line(front, "description", 1024)
    if not _NAME.fullmatch(name):
        raise BadSkill(f"{name!r} is no name: use small letters, digits and single hyphens.")
    body = text[match.end() :].strip()
    if not body:
        raise BadSkill("nothing stands below the front matter: write there what the agent is told.")
    return ParsedSkill(name, description, body, _tools(front))


def missing_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Those of these names that no installed tool has."""
    there = {tool.name for tool in discovery.installed().tools}
    return tuple(name for name in names if name not in there)


def _save(read: ParsedSkill) -> Literal["added", "updated", "unchanged"]:
    fields = {"description": read.description, "body": read.body, "tools": list(read.tools)}
    skill = Skill.objects.filter(name=read.name).first()
    if skill is None:
        Skill.objects.create(name=read.name, **fields)
        return "added"
    if all(getattr(skill, field) == value for field, value in fields.items()):
        return "unchanged"
    Skill.objects.filter(pk=skill.pk).update(**fields)
    return "updated"


def _text_of(file: Path, folder: Path) -> str:
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise BadSkill("it is a link that leads out of the folder: copy the file there.")
        if not real.is_file():
            raise BadSkill("it is no file.")
        if real.stat().st_size > FILE_MOST:
            raise BadSkill(f"it has more than {FILE_MOST:,} bytes: shorten it, and leave the rest in files.")
        text = real.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSkill("it is not UTF-8: save it as UTF-8.") from None
    except OSError as error:
        raise BadSkill(f"it cannot be read ({error.strerror}).") from error
    if "\0" in text:
        raise BadSkill("it is not text: it has a null byte.")
    return text


def _front(text: str) -> dict[object, object]:
    if len(text) > FRONT_MOST:
        raise BadSkill(f"its front matter has more than {FRONT_MOST:,} characters: shorten it.")
    try:
        front = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise BadSkill(f"its front matter is no YAML ({why}): put a text that has a colon in quotes.") from None
    if not isinstance(front, dict):
        raise BadSkill("its front matter has no fields: write `name: ...` and `description: ...`.")
    return front


def _line(front: dict[object, object], field: str, most: int) -> str:
    """A text of the front matter as one line."""
    value = front.get(field)
    if not isinstance(value, str) or not value.strip():
        raise BadSkill(f"its front matter has no {field}: write `{field}: ...` there, as a text.")
    line = " ".join(value.split())
    if len(line) > most:
        raise BadSkill(f"its {field} has {len(line):,} characters: shorten it to {most:,}.")
    return line


def _tools(front: dict[object, object]) -> tuple[str, ...]:
    value = front.get("tools", front.get("allowed-tools")) or []
    names = _TOOL.findall(value) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadSkill("its tools are no list of names: write `tools: [csv.summary]`.")
    return tuple(dict.fromkeys(name.strip() for name in names))
