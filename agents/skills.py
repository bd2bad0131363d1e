"""Skill import: reads SKILL.md files in the public format, one folder for each, with YAML front matter and a body."""

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
"""Bytes of one SKILL.md: far more than an agent should read at once."""
FRONT_MOST = 10_000
"""Characters of its front matter: a description has at most 1,024."""
SHIPPED = Path(__file__).parent / "plugins/skills/shipped"
"""The skills that a new site starts with."""

_FRONT = re.compile(r"\s*---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
"""A name in the format's `allowed-tools` may have brackets that say how the tool may be used: "Bash(git add:*)"."""


class BadSkill(Exception):
    """An invalid SKILL.md. The message says what is wrong with it and how to fix it."""


@dataclass(frozen=True)
class Imported:
    """The result for one file: the `outcome` for the skill `name`, or the `problem` because of which it was skipped."""

    file: Path
    name: str = ""
    outcome: Literal["added", "updated", "unchanged", ""] = ""
    missing: tuple[str, ...] = ()
    """The tools it names that are not installed."""
    problem: str = ""


def import_skills(folder: Path) -> Iterator[Imported]:
    """Import `folder/SKILL.md` and `folder/*/SKILL.md`. Yields one result for each file.

    A skill that exists already is updated, and stays enabled or disabled as it is.
    """
    seen: dict[str, Path] = {}
    for file in skill_files(folder):
        try:
            read = read_skill(file, folder)
        except BadSkill as bad:
            yield Imported(file, problem=str(bad))
            continue
        if other := seen.get(read.name):
            yield Imported(file, problem=f"{other} already has the name {read.name!r}: rename one of the two.")
            continue
        seen[read.name] = file
        yield Imported(file, read.name, _save(read), missing_tools(read.tools))


def add_first_skills() -> None:
    """Import the shipped skills into a site that has none."""
    if not Skill.objects.exists():
        list(import_skills(SHIPPED))


def skill_files(folder: Path) -> list[Path]:
    """Return the files to import, sorted by the names of their folders."""
    return [file for file in [folder / "SKILL.md", *sorted(folder.glob("*/SKILL.md"))] if file.exists()]


def read_skill(file: Path, folder: Path) -> Skill:
    """Return the skill in `file`, which is not saved. Raises BadSkill, also for a link that leads out of `folder`."""
    return parse_skill(_content(file, folder))


def parse_skill(content: bytes) -> Skill:
    """Return the skill in the content of a SKILL.md, which is not saved. Raises BadSkill."""
    match = _FRONT.match(text := _text(content))
    if not match:
        raise BadSkill("it does not begin with front matter: put `---`, a name, a description and `---` at the top.")
    front = _front_matter(match[1])
    name, description = _field(front, "name", 64), _field(front, "description", 1024)
    if not _NAME.fullmatch(name):
        raise BadSkill(f"{name!r} is not a valid name: use lowercase letters, digits and single hyphens.")
    body = text[match.end() :].strip()
    if not body:
        raise BadSkill("there is no text below the front matter: write the instructions for the agent there.")
    return Skill(name=name, description=description, body=body, tools=_tools(front))


def missing_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that do not belong to an installed tool."""
    known = {tool.name for tool in discovery.installed().tools}
    return tuple(name for name in names if name not in known)


def _save(read: Skill) -> Literal["added", "updated", "unchanged"]:
    fields = {"description": read.description, "body": read.body, "tools": read.tools}
    known = Skill.objects.filter(name=read.name)
    if known.filter(**fields).exists():
        return "unchanged"
    if known.update(**fields):
        return "updated"
    read.save()
    return "added"


def _content(file: Path, folder: Path) -> bytes:
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise BadSkill("it is a link that leads out of the folder: copy the file into the folder instead.")
        if not real.is_file():
            raise BadSkill("it is not a regular file.")
        with real.open("rb") as stream:
            return stream.read(FILE_MOST + 1)
    except OSError as error:
        raise BadSkill(f"it cannot be read ({error.strerror}).") from error


def _text(content: bytes) -> str:
    if len(content) > FILE_MOST:
        raise BadSkill(f"it has more than {FILE_MOST:,} bytes: shorten it, and move details to other files.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSkill("it is not UTF-8: save it as UTF-8.") from None
    if "\0" in text:
        raise BadSkill("it is not text: it contains a null byte.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _front_matter(text: str) -> dict[object, object]:
    if len(text) > FRONT_MOST:
        raise BadSkill(f"its front matter has more than {FRONT_MOST:,} characters: shorten it.")
    try:
        front = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise BadSkill(f"its front matter is not valid YAML ({why}): put text with a colon in quotes.") from None
    if not isinstance(front, dict):
        raise BadSkill("its front matter has no fields: write `name: ...` and `description: ...`.")
    return front


def _field(front: dict[object, object], field: str, most: int) -> str:
    """Return a text field of the front matter as one line."""
    value = front.get(field)
    if not isinstance(value, str) or not value.strip():
        raise BadSkill(f"its front matter has no {field}: add `{field}: ...` with a text.")
    line = " ".join(value.split())
    if len(line) > most:
        raise BadSkill(f"its {field} has {len(line):,} characters: shorten it to {most:,} or fewer.")
    return line


def _tools(front: dict[object, object]) -> list[str]:
    value = front.get("tools", front.get("allowed-tools")) or []
    names = _TOOL.findall(value) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadSkill("its `tools` must be a list of names: write, for example, `tools: [csv.summary]`.")
    return list(dict.fromkeys(name.strip() for name in names))
